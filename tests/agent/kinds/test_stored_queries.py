"""A "no" and a list, made again at a later commit: equal as long as the code says the same, wherever its lines are."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent import StoredQuery, run_again, store_queries
from agent.evidence.requests import request_lookup, request_search
from agent.state import Lookup
from tests.fakes.repositories import GitRepo
from tests.indexer.git.test_history import pinned

CALLS = "from shop.pay import charge\n\n\ndef order():\n    return charge(3)\n"


@pytest.fixture
def repository(tmp_path: Path) -> GitRepo:
    repository = GitRepo(tmp_path / "shop")
    repository.write("shop/pay.py", "def charge(cents):\n    return cents\n")
    repository.write("shop/orders.py", CALLS)
    repository.commit("first")
    return repository


async def store(repository: GitRepo, home: Path, lookup: Lookup, name: str) -> StoredQuery | None:
    requests = [request_lookup(lookup, name, reasoning=""), request_search(f"how does {name} work", reasoning="")]
    async with pinned(repository, home) as code:
        return next(iter(await store_queries(code, requests)), None)


async def is_same_now(repository: GitRepo, home: Path, query: StoredQuery | None) -> bool:
    assert query is not None
    repository.commit("push")
    kept = StoredQuery.from_fields(query.to_fields())
    async with pinned(repository, home) as code:
        return await run_again(code, kept) == query


async def test_a_list_is_the_same_where_its_lines_moved_and_another_with_a_new_entry(
    repository: GitRepo, tmp_path: Path
) -> None:
    query = await store(repository, tmp_path / "home", "callers", "charge")

    repository.write("shop/orders.py", '"""Orders."""\n\n' + CALLS)
    assert await is_same_now(repository, tmp_path / "home", query)
    repository.write("shop/refunds.py", CALLS.replace("order", "refund"))
    assert not await is_same_now(repository, tmp_path / "home", query)


async def test_a_no_holds_until_there_is_what_was_asked_for(repository: GitRepo, tmp_path: Path) -> None:
    query = await store(repository, tmp_path / "home", "definition", "refund")

    repository.write("shop/other.py", "def more():\n    pass\n")
    assert await is_same_now(repository, tmp_path / "home", query)
    repository.write("shop/pay.py", "def charge(cents):\n    return cents\n\n\ndef refund(cents):\n    return -cents\n")
    assert not await is_same_now(repository, tmp_path / "home", query)


async def test_a_definition_that_is_there_is_followed_by_its_lines_alone(repository: GitRepo, tmp_path: Path) -> None:
    assert await store(repository, tmp_path / "home", "definition", "charge") is None
