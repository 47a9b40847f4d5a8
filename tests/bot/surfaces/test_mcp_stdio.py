"""`citebot mcp` as an editor starts it: a process of its own, spoken to by the SDK's client and by hand."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from bot.surfaces.principals import hash_token
from tests.fakes.citebot import Citebot
from tests.waiting import wait_for

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
COMMAND = [sys.executable, "-m", "bot", "mcp"]


@pytest.fixture
def variables(shop: Path, home: Path) -> dict[str, str]:
    python = {"PYTHONPATH": str(Path(__file__).parents[3])}
    return {"PATH": os.environ["PATH"], "CITEBOT_HOME": str(home), "CITEBOT_REPO": str(shop)} | python


@asynccontextmanager
async def started(variables: Mapping[str, str], **pipes: Any) -> AsyncIterator[asyncio.subprocess.Process]:
    pipe = asyncio.subprocess.PIPE
    chosen = {"stdin": pipe, "stdout": pipe, "stderr": pipe} | pipes
    process = await asyncio.create_subprocess_exec(*COMMAND, env=variables, **chosen)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def said_hello(process: asyncio.subprocess.Process) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(HELLO).encode() + b"\n")
    answer: dict[str, Any] = json.loads(await wait_for(process.stdout.readline(), "process.stdout.readline()"))
    return answer


async def test_an_editor_searches_reads_and_asks(variables: dict[str, str]) -> None:
    told: list[str] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    parameters = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=variables)
    async with Client(parameters) as client:
        found = await client.call_tool("search_code", {"query": "parse an ISO date"})
        asked = await client.call_tool("ask", {"question": "Who calls parse_date?"}, progress_callback=tell)

    assert found.structured_content is not None
    assert found.structured_content["hits"][0]["path"] == "shop/dates.py"
    assert asked.structured_content is not None
    assert asked.structured_content["found"]
    assert {cited["path"] for cited in asked.structured_content["citations"]} >= {"shop/orders.py"}
    assert asked.structured_content["commit"] == found.structured_content["commit"]
    assert any("parse_date" in step for step in told)


@pytest.mark.exhaustive
async def test_ctrl_c_ends_it_although_the_input_stays_open(variables: dict[str, str]) -> None:
    async with started(variables) as process:
        assert (await said_hello(process))["result"]["protocolVersion"] == "2025-06-18"
        process.send_signal(signal.SIGINT)

        assert await wait_for(process.wait(), "process") == 130


@pytest.mark.exhaustive
async def test_the_end_of_its_input_ends_it_and_nothing_but_messages_was_printed(variables: dict[str, str]) -> None:
    async with started(variables | {"CITEBOT_LOG_LEVEL": "debug"}) as process:
        await said_hello(process)
        assert process.stdin is not None
        process.stdin.write(b"no JSON at all\n\n" + b"x" * 1_500_000 + b"\n")
        process.stdin.close()
        out, _ = await wait_for(process.communicate(), "process.communicate()")

    assert process.returncode == 0
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in out.splitlines())


@pytest.mark.exhaustive
async def test_sigterm_ends_it_although_its_client_never_reads(variables: dict[str, str]) -> None:
    async with started(variables) as process:
        assert process.stdin is not None
        await said_hello(process)
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        lists = ({"jsonrpc": "2.0", "id": number, "method": "tools/list", "params": {}} for number in range(2, 40))
        process.stdin.write(b"".join(json.dumps(each).encode() + b"\n" for each in [ready, *lists]))
        process.send_signal(signal.SIGTERM)

        assert await wait_for(process.wait(), "process") == 143


def test_outside_of_a_repository_it_says_so_and_ends(
    citebot: Citebot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("CITEBOT_REPO", str(tmp_path / "empty"))

    ended = citebot("mcp")

    assert (ended.code, ended.out) == (1, "")
    assert "empty" in ended.err


def test_a_token_is_shown_with_where_its_checksum_belongs(citebot: Citebot) -> None:
    shown = citebot("token", "slack:U0123").out

    assert 'person = "slack:U0123"' in shown
    assert f'sha256 = "{hash_token(shown.split()[-1])}"' in shown
    assert citebot("token", "U0123").code == 1
