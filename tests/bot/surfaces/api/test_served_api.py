"""The API of a process that really serves: a repository of its own, real answers, and the counts of requests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bot.surfaces.principals import hash_token
from tests.bot.serving.test_without_platform import address, serve_alone
from tests.fakes.repositories import GitRepo
from tests.waiting import wait_until

TOKEN = "citebot_of-ann"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def repository(tmp_path: Path) -> GitRepo:
    made = GitRepo(tmp_path / "shop")
    made.write("dates.py", "def parse_date(text):\n    return text\n\n\ndef load():\n    return parse_date('x')\n")
    made.commit()
    return made


@asynccontextmanager
async def serving_api(repository: GitRepo, tmp_path: Path, config: str) -> AsyncIterator[str]:
    (tmp_path / "citebot.toml").write_text(config, encoding="utf-8")
    named = {"CITEBOT_CONFIG": str(tmp_path / "citebot.toml"), "CITEBOT_MODEL": "none"}
    async with serve_alone(repository, tmp_path / "home", named) as said:
        yield said


async def test_a_question_over_http_is_answered_from_the_code(repository: GitRepo, tmp_path: Path) -> None:
    config = f'[[mcp.tokens]]\nperson = "slack:ANN"\nsha256 = "{hash_token(TOKEN)}"\n'
    async with serving_api(repository, tmp_path, config) as said, aiohttp.ClientSession(headers=HEADERS) as session:
        outside, inside = address(said, "Listening"), address(said, "Metrics")
        async with session.post(f"{outside}/api/ask", json={"question": "where is parse_date defined?"}) as answer:
            answered = await answer.json()
        async with session.get(f"{outside}/api/search", params={"q": "parse a date", "limit": "1"}) as answer:
            found = await answer.json()
        async with session.get(f"{outside}/api/symbols", params={"name": "parse_date"}) as answer:
            defined = await answer.json()
        async with session.get(f"{outside}/api/callers", params={"name": "parse_date"}) as answer:
            calls = await answer.json()
        async with session.get(f"{outside}/api/status") as answer:
            status = await answer.json()
        async with session.get(f"{inside}/metrics") as answer:
            figures = await answer.text()

        async def read_state() -> dict[str, Any]:
            async with session.get(f"{outside}/api/answers/{answered['run_id']}") as answer:
                state: dict[str, Any] = await answer.json()
                return state

        before, asked_at = await read_state(), repository.sha()
        repository.write("dates.py", "import re\n\n\ndef parse_date(text, zone):\n    return re.split(zone, text)\n")
        changed = repository.commit()

        async def is_outdated() -> bool:
            return bool((await read_state())["since"])

        await wait_until(is_outdated, "the push is noticed")
        after = await read_state()
        async with session.get(f"{outside}/api/answers/another") as answer:
            assert answer.status == 404

    assert (before["state"], before["places"][0]["state"]) == ("current", "unchanged")
    assert (after["since"], after["places"][0]["state"]) == (changed, "changed")
    assert after["summary"] == f"Outdated since `{changed[:7]}`: 1 of 1 cited places changed (`dates.py:1-2`)"
    assert said.startswith("No chat platform is configured: /api and /v1 answer anyone with a token.")
    assert answered["commit"] == found["commit"] == asked_at
    assert [each["path"] for each in answered["citations"]] == ["dates.py"]
    assert (found["hits"][0]["path"], found["repository"]) == ("dates.py", "shop")
    assert [(each["name"], each["first_line"]) for each in defined["symbols"]] == [("parse_date", 1)]
    assert [(each["line"], each["caller"]["name"]) for each in calls["calls"]] == [(6, "load")]
    assert [(each["repository"], each["commit"]) for each in status["repositories"]] == [("shop", asked_at)]
    for path in ("/api/ask", "/api/search", "/api/symbols", "/api/callers", "/api/status"):
        assert f'path="{path}",status="200"' in figures


async def test_without_a_token_in_the_settings_there_is_no_api(repository: GitRepo, tmp_path: Path) -> None:
    async with serving_api(repository, tmp_path, "") as said, aiohttp.ClientSession(headers=HEADERS) as session:
        for path in ("/api/status", "/api/openapi.json", "/v1/models"):
            async with session.get(f"{address(said, 'Listening')}{path}") as answer:
                assert answer.status == 404
