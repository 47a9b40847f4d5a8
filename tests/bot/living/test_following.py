"""Answers followed through the pushes of a real repository: noted once per difference, and links along with lines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent import StoredQuery
from agent.evidence.requests import request_lookup
from bot.app import open_code_push
from bot.living.following import AnswerFollower
from bot.messages import MessageContent
from bot.storage.database import open_database
from bot.storage.living_answers import AnswerEvidence, CitedPlace, LivingAnswer, LivingAnswerStore
from indexer import IndexStatus
from tests.fakes.clock import FakeClock
from tests.fakes.parts import FakeCode
from tests.fakes.repositories import GitRepo

PAGE = "https://git.example/shop"
RUN = "a" * 32
BODY = "    total = read_price(item)\n    total += read_tax(item)\n    return round(total, 2)\n"


class OneRepository:
    """A repository that is always indexed at its newest commit."""

    def __init__(self, repository: GitRepo) -> None:
        self._repository = repository

    def list_names(self) -> Sequence[str]:
        return ["shop"]

    async def status(self, _: str) -> IndexStatus:
        return IndexStatus(
            repository="shop", path=str(self._repository.root), commit=self._repository.sha(), branch="main",
            indexed_at=0.0, commits_behind=0, files=0, chunks=0, symbols=0, embedder="", disk_bytes=0, skipped={},
        )  # fmt: skip

    async def pin_existing(self, _: str) -> FakeCode:
        return FakeCode()  # of another commit, in which no lookup is made


@dataclass
class Followed:
    """An answer that cites two functions of one file, and what follows it."""

    repository: GitRepo
    store: LivingAnswerStore
    follower: AnswerFollower
    first: str

    async def push(self, text: str) -> LivingAnswer:
        self.repository.write("shop.py", text)
        self.repository.commit()
        await self.follower.follow("shop")
        answer = await self.store.find(RUN)
        assert answer is not None
        return answer


@asynccontextmanager
async def open_followed(folder: Path) -> AsyncIterator[Followed]:
    repository = GitRepo(folder / "shop")
    repository.write("shop.py", make_source())
    first = repository.commit()
    async with open_database(folder / "inbox.sqlite") as database:
        store = LivingAnswerStore(database, FakeClock())
        places = [
            CitedPlace(mark=mark, repository="shop", commit=first, path="shop.py", start_line=start, end_line=start + 3,
                       words=frozenset({word}))
            for mark, start, word in ((1, 1, "price"), (2, 6, "charge"))
        ]  # fmt: skip
        evidence = AnswerEvidence(commits={"shop": first}, places=places)
        content = MessageContent(text="An answer.")
        answer = LivingAnswer(run_id=RUN, entry=1, content=content, question="?", commits={"shop": first})
        await store.keep(answer, "conversation", evidence)
        follower = AnswerFollower(store, OneRepository(repository), open_code_push, pages={"shop": PAGE})  # type: ignore[arg-type]
        await follower.follow("shop")
        yield Followed(repository, store, follower, first)


def make_source(*, before: str = "", name: str = "price", after: str = "") -> str:
    return f"{before}def {name}(item):\n{BODY}\ndef charge(item):\n{BODY}{after}"


@pytest.fixture
async def followed(tmp_path: Path) -> AsyncIterator[Followed]:
    async with open_followed(tmp_path) as opened:
        yield opened


async def test_a_difference_is_noted_once_however_often_its_file_is_pushed(followed: Followed) -> None:
    outdated = await followed.push(make_source(name="price_of"))
    assert outdated.changes[0] == "1 of 2 cited places changed"
    assert outdated.since == followed.repository.sha()

    later = await followed.push(make_source(name="price_of", after="\nmore = 1\n"))

    assert later == outdated
    assert (await followed.push(make_source())).changes == ()


async def test_links_follow_lines_that_moved_until_the_answer_is_outdated(followed: Followed) -> None:
    moved = await followed.push(make_source(before="import tax\n\n"))
    newer = followed.repository.sha()

    old, new = f"{PAGE}/blob/{followed.first}/shop.py", f"{PAGE}/blob/{newer}/shop.py"
    assert moved.changes == ()
    assert moved.links == {f"{old}#L1-L4": f"{new}#L3-L6", f"{old}#L6-L9": f"{new}#L8-L11"}
    outdated = await followed.push(make_source(before="import tax\n\n", name="price_of"))
    assert outdated.links == moved.links


async def test_lines_that_a_lookup_lists_may_change(followed: Followed) -> None:
    kept = await followed.store.find(RUN)
    assert kept is not None
    places = [one.cited for one in await followed.store.list_places(RUN)]
    request = request_lookup("callers", "shop.price", reasoning="")
    callers = StoredQuery(request=request, items=("order.py",), totals={})
    evidence = AnswerEvidence(commits=kept.commits, places=places, queries={"shop": [callers]})
    await followed.store.keep(kept, "conversation", evidence)

    assert (await followed.push(make_source(name="price_of"))).changes == ()
    assert (await followed.push(f"def price():\n{BODY}\nVALUE = 3\n")).changes[0] == "1 of 2 cited places changed"


def query(*items: str, lookup: str = "callers", **totals: int) -> StoredQuery:
    request = request_lookup(lookup, "send", reasoning="")  # type: ignore[arg-type]
    return StoredQuery(request=request, items=items, totals=totals)


@pytest.mark.parametrize(
    ("before", "after", "differ"),
    [
        (query("a.py load", total=1), query("a.py load", total=2), None),  # of what is not listed
        (query("a.py load", "a.py"), query("pkg/b.py load", "a.py"), None),  # its file is called otherwise
        (query("a.py load"), query("a.py load", "tests/test_a.py test_load"), None),
        (query("a.py load"), query("a.py load", "b.py load"), (["b.py load"], [])),
        (query("a.py load"), query("a.py load", "pkg/__init__.py __all__"), None),
        (query("a.py load", "b.py"), query("a.py save", "c.py"), (["a.py save", "c.py"], ["a.py load", "b.py"])),
        (
            query(lookup="tests"),
            query("tests/test_a.py test_load", lookup="tests"),
            (["tests/test_a.py test_load"], []),
        ),
    ],
)
def test_a_list_differs_by_the_code_that_it_names(
    before: StoredQuery, after: StoredQuery, differ: tuple[list[str], list[str]] | None
) -> None:
    assert before.compare(after) == differ
