# citebot as a container: `docker build -t citebot .`; docs/deploy.md says how to run it.
# Packages come from pip's configured index, checked against the checksums in requirements/; the container downloads nothing.
# Tags can change: docs/supply-chain.md explains how to name the digest of the base image.

ARG BASE_IMAGE=python:3.12-slim-trixie

FROM ${BASE_IMAGE} AS build
WORKDIR /src
RUN python -m venv /opt/citebot && python -m venv /opt/build
COPY requirements requirements
RUN /opt/citebot/bin/pip install --no-cache-dir --no-deps --only-binary=:all: --require-hashes --requirement requirements/container.txt \
    && /opt/build/bin/pip install --no-cache-dir --only-binary=:all: --require-hashes --requirement requirements/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY agent agent
COPY bot bot
COPY indexer indexer
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir wheels . \
    && /opt/citebot/bin/pip install --no-cache-dir --no-deps --no-index wheels/*.whl \
    && /opt/citebot/bin/citebot --version

FROM ${BASE_IMAGE}
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap git openssh-client \
    && rm -rf /var/lib/apt/lists/*
# Git refuses to read repositories of other users; trust those that the operator mounts below /srv/git.
RUN git config --system --add safe.directory '/srv/git/*'
RUN useradd --uid 10001 --user-group --create-home citebot \
    && install --directory --owner=citebot --group=citebot --mode=0700 /data \
    && install --directory /config
COPY --from=build /opt/citebot /opt/citebot
ENV PATH=/opt/citebot/bin:$PATH CITEBOT_HOME=/data CITEBOT_CONFIG=/config
USER 10001:10001
WORKDIR /config
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-I", "-c", "import http.client, os, sys; probe = http.client.HTTPConnection('127.0.0.1', int(os.environ.get('CITEBOT_WEB_PORT') or 8080), timeout=4); probe.request('GET', '/healthz'); sys.exit(probe.getresponse().status != 200)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["citebot"]
CMD ["serve"]
