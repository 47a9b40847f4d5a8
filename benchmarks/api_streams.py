"""Measures what a program waits for at the HTTP API: `python -m benchmarks.api_streams`.

`citebot serve` runs over a small repository in a process of its own, without a model and without a chat platform. The
first byte is that of the body; a connection is made for each request, as always.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import aiohttp

from benchmarks.serving import question, write_repository
from bot.surfaces.principals import hash_token

TOKEN = "a-token-of-the-benchmark"
ROUNDS = 50
START_SECONDS = 120.0
HEADERS = {"Authorization": f"Bearer {TOKEN}", "Accept": "text/event-stream"}
CONFIG = f'[[mcp.tokens]]\nperson = "slack:U1"\nsha256 = "{hash_token(TOKEN)}"\n'


@dataclass(frozen=True, kw_only=True)
class Waits:
    """Milliseconds from a request to the first byte, to the first text of the answer, and to the end."""

    first: float
    text: float
    whole: float


@contextmanager
def serve(folder: Path, repository: Path) -> Iterator[str]:
    """Index a repository and serve it; yields the address."""
    (folder / "citebot.toml").write_text(CONFIG, encoding="utf-8")
    variables = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path) or ".",
        "CITEBOT_HOME": str(folder / "home"),
        "CITEBOT_CONFIG": str(folder / "citebot.toml"),
        "CITEBOT_MODEL": "none",
        "CITEBOT_WEB_PORT": "0",
        "CITEBOT_METRICS_PORT": "0",
        "CITEBOT_QUESTIONS_PER_MINUTE": "100000",
        "CITEBOT_QUESTIONS_PER_DAY": "100000",
    }
    command = [sys.executable, "-m", "bot"]
    subprocess.run([*command, "index", "--repo", str(repository)], env=variables, check=True, capture_output=True)
    process = subprocess.Popen(
        [*command, "serve", "--repo", str(repository)],
        env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        yield read_address(process)
    finally:
        process.terminate()
        process.wait(START_SECONDS)


def read_address(process: subprocess.Popen[str]) -> str:
    """Wait until the process says where it listens."""
    said = ""
    for line in process.stdout or ():
        said += line
        if found := re.search(r"Listening at (http://\S+)\. ", said):
            return found[1]
    raise SystemExit(f"citebot serve does not come up:\n{said}")


async def measure(address: str, path: str, body: Mapping[str, object], mark: bytes) -> Waits:
    """Ask once; `mark` stands before the text of an answer."""
    began = perf_counter()
    first = text = 0.0
    async with aiohttp.ClientSession(headers=HEADERS) as session, session.post(f"{address}{path}", json=body) as answer:
        answer.raise_for_status()
        async for line in answer.content:
            first = first or perf_counter()
            if mark in line:
                text = text or perf_counter()
    whole = perf_counter()
    return Waits(first=1_000 * (first - began), text=1_000 * (text - began), whole=1_000 * (whole - began))


async def measure_all(address: str, rounds: int) -> None:
    """Ask at both ends some times, and print the usual and the long waits."""
    messages = [{"role": "user", "content": question(7)}]
    ends: Mapping[str, tuple[Mapping[str, object], bytes]] = {
        "/api/ask": ({"question": question(7)}, b"event: text"),
        "/v1/chat/completions": ({"model": "citebot", "messages": messages, "stream": True}, b'"delta": {"content": "'),
    }
    print("milliseconds, p50 / p95      first byte   first text        whole")
    for path, (body, mark) in ends.items():
        await measure(address, path, body, mark)  # whatever is loaded at the first time
        waits = [await measure(address, path, body, mark) for _ in range(rounds)]
        columns = ([each.first for each in waits], [each.text for each in waits], [each.whole for each in waits])
        print(f"{path:24}" + "".join(f"{format_spread(column):>13}" for column in columns))


def format_spread(values: list[float]) -> str:
    """Write the median and the 95th percentile."""
    return f"{statistics.median(values):.0f} / {statistics.quantiles(values, n=20)[-1]:.0f}"


def main() -> None:
    """Measure, in a folder that is thrown away."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_repository(folder / "repository")
        with serve(folder, folder / "repository") as address:
            asyncio.run(measure_all(address, arguments.rounds))


if __name__ == "__main__":
    main()
