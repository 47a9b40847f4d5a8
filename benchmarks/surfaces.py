"""Measures `citebot mcp` and `citebot web`: from the start to the first answer, searches, the page and its streams.

`python -m benchmarks.surfaces --repo PATH`. The repository is indexed first, with a data folder that is thrown away.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
from mcp import Client, StdioServerParameters

STARTS, SEARCHES, ASKED = 7, 100, 20
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


async def measure_page(repository: str, environment: Mapping[str, str]) -> tuple[int, list[float]]:
    """Return the bytes that a browser loads for the page, and the milliseconds from a question to the first event."""
    command = [sys.executable, "-m", "bot", "web", "--repo", repository, "--port", "0"]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdout=pipe, stderr=asyncio.subprocess.STDOUT, env=environment
    )
    if process.stdout is None:
        raise AssertionError("its output is a pipe")
    try:
        told = (await process.stdout.readuntil(b"/login?t=") + await process.stdout.readuntil(b" ")).decode()
        address = re.findall(r"http://\S+", told)[0]
        jar = aiohttp.CookieJar(unsafe=True)  # which keeps cookies of addresses that are numbers
        async with aiohttp.ClientSession(cookie_jar=jar, auto_decompress=False) as session:
            return await _load_and_ask(session, address)
    finally:
        process.terminate()
        await process.wait()


async def _load_and_ask(session: aiohttp.ClientSession, address: str) -> tuple[int, list[float]]:
    base = address.partition("/login")[0]
    packed = {"Accept-Encoding": "gzip"}
    async with session.get(address) as require_session:
        await require_session.read()
    async with session.get(base, headers={"Accept-Encoding": "identity"}) as answer:
        page = (await answer.read()).decode()
    weight = 0
    for path in ["/", *re.findall(r'(?:src|href)="(/static/[^"]+)"', page)]:
        async with session.get(base + path, headers=packed) as answer:
            weight += len(await answer.read())
    form = {"csrf": re.findall(r'name="csrf" value="([^"]+)"', page)[0]}
    headers = {"Origin": base, "HX-Request": "true", "Accept-Encoding": "identity"}
    waits = []
    for number in range(ASKED):
        began = time.perf_counter()
        question = {"question": f"where is {WORDS[number % len(WORDS)]} defined?"}
        async with session.post(f"{base}/ask", data=form | question, headers=headers) as answer:
            stream = re.findall(r'data-stream="([^"]+)"', (await answer.read()).decode())[0]
        async with session.get(base + stream, headers={"Accept-Encoding": "identity"}) as events:
            await events.content.readany()
            waits.append((time.perf_counter() - began) * 1_000)
            await events.read()
    return weight, sorted(waits)


async def measure(repository: str, environment: Mapping[str, str]) -> None:
    """Print all of it."""
    await measure_start(repository, environment)  # whatever is compiled at the first time
    starts = [await measure_start(repository, environment) for _ in range(STARTS)]
    walls, processor = [each[0] for each in starts], [each[1] for each in starts]
    print(f"start to the first answer: {min(walls):.2f} s at least, {statistics.median(walls):.2f} s usually")
    print(f"processor time of that:    {min(processor):.2f} s at least, {statistics.median(processor):.2f} s usually")
    searches = await measure_searches(repository, environment)
    middle, late = searches[len(searches) // 2], searches[len(searches) * 95 // 100]
    print(f"search_code:               {middle:.0f} ms usually, {late:.0f} ms at p95 of {len(searches)}")
    weight, waits = await measure_page(repository, environment)
    print(f"page:                      {weight / 1_000:.0f} kB in all")
    middle, late = statistics.median(waits), waits[len(waits) * 95 // 100 - 1]
    print(f"question to first event:   {middle:.0f} ms usually, {late:.0f} ms at p95 of {len(waits)}")
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
