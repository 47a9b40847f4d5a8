"""Measures `citebot mcp`: from its start to the first answer of a tool, and how long searches take over MCP.

`python -m benchmarks.surfaces --repo PATH`. The repository is indexed first, with a data folder that is thrown away.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

STARTS, SEARCHES = 7, 100
COMMAND = ["-m", "bot", "mcp", "--repo"]
INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
WORDS = (
    "parse date open file read write send request session error retry config load test index search token user".split()
)


async def measure_start(repository: str, environment: Mapping[str, str]) -> tuple[float, float]:
    """Start the server, and return the seconds to its first answer and those of processor time."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    pipe = asyncio.subprocess.PIPE
    command = [sys.executable, *COMMAND, repository]
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, env=environment)
    if process.stdin is None or process.stdout is None:
        raise AssertionError("both ends are pipes")
    for message in (
        {"id": 1, "method": "initialize", "params": INITIALIZE},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "search_code", "arguments": {"query": "parse a date"}}},
    ):
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    await process.stdout.readline()
    answer: dict[str, Any] = json.loads(await process.stdout.readline())
    seconds = time.perf_counter() - began
    if answer["result"].get("isError"):
        raise SystemExit(answer["result"]["content"][0]["text"])
    process.stdin.close()
    await process.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


async def measure_searches(repository: str, environment: Mapping[str, str]) -> list[float]:
    """Search for other words each time; return the milliseconds that each took, in order of length."""
    taken = []
    parameters = StdioServerParameters(command=sys.executable, args=[*COMMAND, repository], env=dict(environment))
    async with Client(parameters) as client:
        for number in range(SEARCHES):
            query = f"{WORDS[number % len(WORDS)]} {WORDS[(number * 7 + 3) % len(WORDS)]}"
            began = time.perf_counter()
            await client.call_tool("search_code", {"query": query})
            taken.append((time.perf_counter() - began) * 1_000)
    return sorted(taken)


async def measure(repository: str, environment: Mapping[str, str]) -> None:
    """Print both."""
    await measure_start(repository, environment)  # whatever is compiled at the first time
    starts = [await measure_start(repository, environment) for _ in range(STARTS)]
    walls, processor = [each[0] for each in starts], [each[1] for each in starts]
    print(f"start to the first answer: {min(walls):.2f} s at least, {statistics.median(walls):.2f} s usually")
    print(f"processor time of that:    {min(processor):.2f} s at least, {statistics.median(processor):.2f} s usually")
    searches = await measure_searches(repository, environment)
    middle, late = searches[len(searches) // 2], searches[len(searches) * 95 // 100]
    print(f"search_code:               {middle:.0f} ms usually, {late:.0f} ms at p95 of {len(searches)}")
    print(f"load average:              {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores")


def main() -> None:
    """Index the repository, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repo", type=Path, required=True)
    repository = str(parser.parse_args().repo.absolute())
    with tempfile.TemporaryDirectory() as home:
        environment = {"PATH": os.environ["PATH"], "CITEBOT_HOME": home, "CITEBOT_MODEL": "none"}
        index = [sys.executable, "-m", "bot", "index", "--repo", repository]
        subprocess.run(index, env=environment, check=True, capture_output=True)
        asyncio.run(measure(repository, environment))


if __name__ == "__main__":
    main()
