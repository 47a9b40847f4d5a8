# citebot as a container: `docker build -t citebot .`; the README (Containers and services) tells how it is run.
# Packages come from the index that pip is configured for; nothing is downloaded when it runs.

FROM python:3.12-slim AS build
WORKDIR /src
RUN python -m venv /opt/citebot
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY agent agent
COPY bot bot
COPY indexer indexer
RUN /opt/citebot/bin/pip install --no-cache-dir --constraint constraints.txt .

FROM python:3.12-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git openssh-client \
    && rm -rf /var/lib/apt/lists/*
# Repositories that are mounted belong to other users, which git refuses to read; here the operator chose each of them.
RUN git config --system --add safe.directory '*'
RUN useradd --uid 10001 --user-group --create-home citebot \
    && install --directory --owner=citebot --group=citebot --mode=0700 /data \
    && install --directory /config
COPY --from=build /opt/citebot /opt/citebot
ENV PATH=/opt/citebot/bin:$PATH CITEBOT_HOME=/data
USER 10001:10001
# citebot.toml is looked for where citebot is started.
WORKDIR /config
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import http.client, os, sys; probe = http.client.HTTPConnection('127.0.0.1', int(os.environ.get('CITEBOT_WEB_PORT') or 8080), timeout=4); probe.request('GET', '/healthz'); sys.exit(probe.getresponse().status != 200)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["citebot"]
CMD ["serve"]
