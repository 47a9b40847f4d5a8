"""`/mcp` of the server: every tool with its schema, who may call it, and what becomes of calls that are left."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import jsonschema
import pytest
from mcp.shared.exceptions import MCPError

from bot.messages import Place
from bot.storage.rate_limits import QuestionLimits
from tests.bot.chat import message
from tests.bot.surfaces.cores import FILES, HOSTILE, SECRET, TOKENS, Served, open_served
from tests.bot.surfaces.mcp_clients import Era, connected, text_of
from tests.fakes.answerer import FakeAnswerer
from tests.waiting import LIMIT_SECONDS, wait_for, wait_until

CALLS: dict[str, dict[str, Any]] = {
    "search_code": {"query": "parse a date", "languages": ["python"], "kinds": ["code"], "limit": 2},
    "grep": {"pattern": "DEF parse", "ignore_case": True},
    "read_file": {"path": "shop/orders.py", "first_line": 3, "limit": 4},
    "list_files": {"folder": "shop"},
    "find_files": {"glob": "*.py"},
    "find_symbol": {"name": "parse_date"},
    "find_callers": {"name": "parse_date", "limit": 1},
    "find_callees": {"name": "load_order"},
    "file_history": {"path": "shop/dates.py", "line": 1},
    "repository_log": {"path": "shop", "since": "2001-01-31"},
    "compare_refs": {"from_ref": "HEAD"},
    "list_repositories": {},
    "ask": {"question": "who calls parse_date?"},
}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with open_served(tmp_path) as opened:
        yield opened


async def posted(served: Served, body: Any = None, **headers: str) -> tuple[int, str]:
    """Send a request by hand."""
    sent = HEADERS | {"Authorization": f"Bearer {TOKENS['ben']}"} | headers
    data = body if isinstance(body, bytes) else json.dumps(body or INITIALIZE).encode()
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=LIMIT_SECONDS)) as session,
        session.post(f"{served.address}/mcp", data=data, headers=sent) as answer,
    ):
        return answer.status, await answer.text()


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_every_tool_only_reads_and_its_results_fit_its_schema(served: Served, era: Era) -> None:
    async with connected(served.address, TOKENS["ben"], era=era) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == set(CALLS)
        for name, arguments in CALLS.items():
            tool, result = tools[name], await client.call_tool(name, arguments)

            assert tool.annotations is not None
            assert (tool.annotations.read_only_hint, tool.annotations.destructive_hint) == (True, False)
            assert not result.is_error, text_of(result)
            jsonschema.validate(arguments, tool.input_schema)
            assert tool.output_schema is not None
            jsonschema.validate(result.structured_content, tool.output_schema)
            named = (result.structured_content or {}).get("repositories", [result.structured_content])
            assert all(one["repository"] == "shop" and one["commit"] for one in named)
            assert "shop at " in text_of(result)
            assert '"' + "repository" not in text_of(result)  # said once, as text and not as JSON


async def test_results_are_pages_with_numbered_lines(served: Served) -> None:
    async with connected(served.address, TOKENS["ben"]) as client:
        first = (await client.call_tool("find_callers", {"name": "parse_date", "limit": 1})).structured_content or {}
        rest = await client.call_tool("find_callers", {"name": "parse_date", "offset": first["next"]})
        read = (await client.call_tool("read_file", {"path": "shop/orders.py", "limit": 2})).structured_content or {}

    others = (rest.structured_content or {})["calls"]
    assert first["total"] == 1 + len(others)
    assert first["calls"][0] not in others
    lines = FILES["shop/orders.py"].splitlines()
    assert read["code"] == f"1\t{lines[0]}\n2\t{lines[1]}"
    assert (read["total"], read["next"]) == (len(lines), 3)


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("search_code", {"query": "x", "limt": 2}, "'limt' is no argument. The arguments are query, languages"),
        ("search_code", {"query": "x", "limit": "2"}, "limit: Input should be a valid integer"),
        ("grep", {"pattern": "("}, "not a valid RE2 pattern"),
        ("read_file", {"path": "../../etc/passwd"}, "There is no ../../etc/passwd"),
        ("read_file", {"path": "shop/odrers.py"}, "Similar: shop/orders.py"),
        ("delete_file", {"path": "x"}, "There is no tool 'delete_file'"),
        ("ask", {"question": " "}, "The question is empty"),
    ],
)
async def test_a_wrong_call_says_what_is_wrong(served: Served, tool: str, arguments: Any, said: str) -> None:
    async with connected(served.address, TOKENS["ben"]) as client:
        result = await client.call_tool(tool, arguments)

    assert result.is_error
    assert said in text_of(result)


async def test_a_path_that_is_not_there_says_how_much_was_read(served: Served) -> None:
    async with connected(served.address, TOKENS["ben"]) as client:
        for tool, arguments in {"read_file": {"path": "shop/gone.py"}, "list_files": {"folder": "gone"}}.items():
            result = await client.call_tool(tool, arguments)

            assert result.is_error
            assert (result.structured_content or {})["coverage"]["files"] >= len(FILES)


async def test_what_files_hold_is_data_with_secrets_masked_and_nothing_that_steers_a_terminal(served: Served) -> None:
    async with connected(served.address, TOKENS["ben"]) as client:
        calls = [
            ("grep", {"pattern": "TOKEN|Ignore|WIDE"}),
            ("read_file", {"path": "shop/keys.py"}),
            ("read_file", {"path": "shop/notes.md"}),
            ("search_code", {"query": "token ignore instructions environment wide"}),
        ]
        results = [await client.call_tool(name, arguments) for name, arguments in calls]

    shown = [text_of(each) + json.dumps(each.structured_content, ensure_ascii=False) for each in results]
    assert not any(SECRET in each or "\x1b" in each for each in shown)
    assert all(HOSTILE in shown[at] for at in (0, 2))
    assert max(map(len, "".join(shown).splitlines())) < 40_000
    assert all(len(line) < 500 for line in text_of(results[0]).splitlines())


async def test_a_file_is_a_resource_at_its_commit_alone(served: Served) -> None:
    async with connected(served.address, TOKENS["ben"]) as client:
        commit = ((await client.call_tool("grep", {"pattern": "x"})).structured_content or {})["commit"]
        (template,) = (await client.list_resource_templates()).resource_templates
        read = await client.read_resource(f"citebot://shop/{commit}/shop/dates.py")

        assert template.uri_template == "citebot://{repository}/{commit}/{+path}"
        assert read.contents[0].text == FILES["shop/dates.py"].rstrip("\n")  # type: ignore[union-attr]
        for address, said in {
            f"citebot://shop/{'0' * 40}/shop/dates.py": f"not indexed at '{'0' * 40}' any more, but at {commit}",
            f"citebot://shop/{commit}/shop/gone.py": "no indexed file 'shop/gone.py'",
            f"citebot://shop/{commit}/../../etc/passwd": "no indexed file",
            f"citebot://vault/{commit}/vault_only.py": "no repository 'vault' that you may ask about",
            "file:///etc/passwd": "is not the address of a file",
        }.items():
            with pytest.raises(MCPError) as refused:
                await client.read_resource(address)
            assert said in refused.value.message


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": "Bearer citebot_of-nobody"}, 401),
        ({"Authorization": f"Basic {TOKENS['ben']}"}, 401),
        ({"Host": "rebound.example"}, 421),
        ({"Host": "rebound.example:80@127.0.0.1"}, 421),
        ({"Host": "[::1]:8080"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://evil.example\\@127.0.0.1"}, 403),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Content-Encoding": "gzip"}, 415),
    ],
)
async def test_who_calls_from_where(served: Served, headers: dict[str, str], status: int) -> None:
    assert (await posted(served, **headers))[0] == status


async def test_an_answer_says_that_its_connection_ends(served: Served) -> None:
    headers = {**HEADERS, "Authorization": f"Bearer {TOKENS['ben']}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(f"{served.address}/mcp", data=json.dumps(INITIALIZE)) as answer,
    ):
        assert (answer.status, answer.headers.getall("Connection")) == (200, ["close"])


async def test_a_body_that_is_too_large_or_no_message_is_refused(served: Served) -> None:
    assert (await posted(served, b"x" * 1_000_001))[0] == 413
    assert (await posted(served, b"no JSON"))[0] == 400
    assert (await posted(served, INITIALIZE))[0] == 200


async def test_only_messages_can_be_sent(served: Served) -> None:
    async with aiohttp.ClientSession() as session:
        for method in ("GET", "DELETE"):
            async with session.request(method, f"{served.address}/mcp") as answer:
                assert answer.status == 405


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_client_that_leaves_ends_its_question_and_nobody_elses(tmp_path: Path, era: Era) -> None:
    answerer = FakeAnswerer(gate=asyncio.Event())
    async with open_served(tmp_path, answerer=answerer) as served:
        async with connected(served.address, TOKENS["ben"], era=era) as leaving:
            left = asyncio.create_task(leaving.call_tool("ask", {"question": "who calls send?"}))
            await wait_for(answerer.begun.acquire(), "answerer.begun")
            left.cancel()
            await asyncio.wait({left})
            async with connected(served.address, TOKENS["ann"]) as other:
                assert not (await other.call_tool("search_code", {"query": "date", "repository": "shop"})).is_error
        await wait_until(lambda: not (answerer._stops), "not (answerer._stops)")

    assert answerer.runs.answered == {}


async def test_a_person_is_limited_as_in_a_chat(tmp_path: Path) -> None:
    limits = QuestionLimits(per_minute=1, per_day=1)
    async with open_served(tmp_path, limits=limits) as served, connected(served.address, TOKENS["ben"]) as client:
        first = await client.call_tool("ask", {"question": "who calls send?"})
        second = await client.call_tool("ask", {"question": "who calls send?"})
        async with connected(served.address, TOKENS["ann"]) as other:
            others = await other.call_tool("ask", {"question": "who calls send?", "repository": "shop"})

    assert not first.is_error
    assert "You have asked 1 questions" in text_of(second)
    assert not others.is_error


async def test_what_was_asked_in_a_chat_counts_against_the_same_limit(tmp_path: Path) -> None:
    limits = QuestionLimits(per_minute=1, per_day=1)
    async with open_served(tmp_path, limits=limits) as served, connected(served.address, TOKENS["ben"]) as client:
        assert served.core.lookups.counter is not None
        place = Place(platform="slack", workspace="T1", channel="C1", thread="1")
        await served.core.lookups.counter.count(message(author="ben", place=place))
        refused = await client.call_tool("ask", {"question": "who calls send?"})

    assert "You have asked 1 questions" in text_of(refused)


async def test_a_client_that_never_reads_is_left_and_keeps_nobody_waiting(served: Served) -> None:
    host, port = served.address.removeprefix("http://").split(":")
    lines = [f"POST /mcp HTTP/1.1\r\nHost: {host}", *(f"{name}: {value}" for name, value in HEADERS.items())]
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
    lines += [f"Authorization: Bearer {TOKENS['ben']}", f"Content-Length: {len(body)}"]
    writers = []
    for _ in range(8):
        _, writer = await asyncio.open_connection(host, int(port), limit=64)
        writer.write("\r\n".join([*lines, "", body]).encode())
        writers.append(writer)
    async with connected(served.address, TOKENS["ann"]) as client:
        assert not (await client.call_tool("list_repositories", {})).is_error
    for writer in writers:
        writer.transport.abort()
