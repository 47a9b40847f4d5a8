"""The contract of each tool, over code held in memory and over a real index of the same files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.evidence.refs import LONGEST_RANGE
from agent.lookups.catalogue import LOOKUPS
from agent.lookups.read_file import MAX_LINES, parse_ranges
from agent.lookups.tool import MAX_CHARACTERS
from agent.ports import CodeSearch, Deps, ToolOutcome
from agent.tools.registry import make_tool_registry
from tests.agent.conftest import Told, redact
from tests.fakes.code import FakeCode
from tests.fakes.repositories import GitRepo
from tests.fakes.shop import SHOP
from tests.indexer.git.test_history import pinned

BASES = """class Base:
    def close(self) -> None:
        pass


class File(Base):
    def close(self) -> None:
        pass


class Socket(Base):
    def close(self) -> None:
        pass
"""
HEIRS = """class Root:
    pass


class Branch(Root):
    pass


class Leaf(Branch):
    pass
"""
CALLS = """from bases import File, Socket


def use(thing, file: File) -> None:
    file.close(); file.close()
    thing.close()
"""
FILES = {
    **SHOP,
    "bases.py": BASES,
    "calls.py": CALLS,
    "heirs.py": HEIRS,
    "long.py": "".join(f"value_{n} = {n}\n" for n in range(1, 651)),
    "much.py": "".join(
        f"{indent}def much():\n" + "".join(f"{indent}    x = {n}\n" for n in range(lines))
        for indent, lines in (("", 201), ("", 99))
    ),
}
ROOMS = {each.model_name: each.room for each in LOOKUPS}


def make_deps(code: CodeSearch) -> Deps:
    return Deps(code=code, redact=redact, emit=Told(), tools=make_tool_registry())


@pytest.fixture(params=["fake", "index"])
async def deps(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Deps]:
    if request.param == "fake":
        yield make_deps(FakeCode(FILES))
        return
    async with indexed(FILES, tmp_path) as code:
        yield make_deps(code)


def indexed(files: Mapping[str, str], folder: Path) -> Any:
    repository = GitRepo(folder / "shop")
    for path, text in files.items():
        repository.write(path, text)
    repository.commit("Add the shop", author="Ada Example <ada@example.org>")
    return pinned(repository, folder / "home")


async def call(deps: Deps, name: str, /, **args: Any) -> ToolOutcome:
    outcome = await deps.tools.call(name, args, deps)
    assert outcome.ok, outcome.text
    assert len(outcome.text) <= ROOMS.get(name, MAX_CHARACTERS)
    return outcome


def places(outcome: ToolOutcome) -> list[str]:
    return [f"{ref['path']}:{ref['start_line']}-{ref['end_line']}" for ref in outcome.refs]


async def test_several_ranges_are_read_in_order_and_each_is_evidence(deps: Deps) -> None:
    outcome = await call(deps, "read_file", file_path="long.py", ranges=["300-302", "7", "8-9", "9999"])

    assert places(outcome) == ["long.py:7-9", "long.py:300-302"]
    assert "  301 value_301 = 301" in outcome.text
    assert "There is no line 9999." in outcome.text


async def test_a_long_range_is_read_in_pieces_that_can_be_cited_and_says_where_to_read_on(deps: Deps) -> None:
    outcome = await call(deps, "read_file", file_path="long.py", start=1, end=700)

    assert places(outcome) == [f"long.py:{start}-{start + LONGEST_RANGE - 1}" for start in (1, 201, 401)]
    assert f"Read on from line {MAX_LINES + 1}." in outcome.text


async def test_a_definition_is_shown_whole_and_a_longer_one_says_where_it_continues(deps: Deps) -> None:
    outcome = await call(deps, "find_symbol", name="much")

    assert places(outcome) == ["much.py:1-120", "much.py:203-302"]
    assert "much continues to line 202: read_file has lines 121 to 202." in outcome.text


async def test_every_shown_line_carries_its_own_number(deps: Deps) -> None:
    outcome = await call(deps, "read_file", file_path="long.py", start=90, end=120)
    numbered = [line.split() for line in outcome.text.splitlines() if " = " in line]

    assert [words[0] for words in numbered] == [words[-1] for words in numbered]
    assert len(numbered) == 31


async def test_a_folder_is_listed_with_counts(deps: Deps) -> None:
    outcome = await call(deps, "list_directory", path="shop")

    assert "0 folders and 4 files; 4 files and 83 lines in all, python 4." in outcome.text
    assert len(outcome.refs) == 4
    assert len((await call(deps, "list_directory", path="shop", skip=3)).refs) == 1


async def test_callers_are_apart_by_definition_and_repeat_no_line(deps: Deps) -> None:
    outcome = await call(deps, "get_callers", function_name="parse_date")

    assert "Calls of parse_date (shop/dates.py:6-8): 3" in outcome.text
    assert sorted(places(outcome)) == ["shop/orders.py:12-12", "shop/orders.py:21-21", "tests/test_dates.py:5-5"]
    assert places(await call(deps, "get_callers", function_name="parse_date", path="tests")) == [
        "tests/test_dates.py:5-5"
    ]


async def test_what_is_called_is_listed_with_where_it_is_defined(deps: Deps) -> None:
    outcome = await call(deps, "get_callees", function_name="Order.pay")

    calls, _, defined = outcome.text.partition("Where these are defined:")
    assert "[shop/orders.py:L16] PaymentSession.send" in calls
    assert "[shop/payments.py:L19] PaymentSession.send: def send" in defined
    assert "shop/payments.py:19-19" in places(outcome)


async def test_a_class_shows_its_bases(deps: Deps) -> None:
    outcome = await call(deps, "find_symbol", name="Leaf")

    assert "Its bases, and types in its signature:\n[heirs.py:L5] Branch: class Branch(Root):" in outcome.text
    assert places(outcome) == ["heirs.py:9-10", "heirs.py:5-5", "heirs.py:1-1"]


async def test_a_class_shows_its_subclasses(deps: Deps) -> None:
    outcome = await call(deps, "find_symbol", name="Base")

    assert "Subclasses of Base: 2 direct, 0 indirect." in outcome.text
    assert places(outcome) == ["bases.py:1-3", "bases.py:6-6", "bases.py:11-11"]


async def test_a_method_shows_what_overrides_it_and_what_it_overrides(deps: Deps) -> None:
    upper = await call(deps, "find_symbol", name="Base.close")
    lower = await call(deps, "find_symbol", name="File.close")

    assert "Base.close is overridden by:" in upper.text
    assert places(upper) == ["bases.py:2-3", "bases.py:7-7", "bases.py:12-12"]
    assert "File.close overrides:" in lower.text
    assert places(lower) == ["bases.py:7-8", "bases.py:2-2"]


async def test_commits_are_listed_by_author_words_and_path(deps: Deps) -> None:
    for args in ({}, {"author": "ada"}, {"message": "SHOP add"}, {"path": "shop"}, {"until": "2030-01-01"}):
        outcome = await call(deps, "repository_log", **args)
        assert "by Ada Example: Add the shop" in outcome.text
        assert [(ref["role"], ref["path"], ref.get("commit")) for ref in outcome.refs] == [
            ("commit", "", deps.code.commit.sha)
        ]
    for args in ({"author": "example.org"}, {"message": "remove"}, {"since": "2030-01-01"}):
        assert "No commit fits" in (await call(deps, "repository_log", **args)).text


@pytest.mark.parametrize(
    "args",
    [
        {"from_ref": "--all"},
        {"to_ref": ":(exclude)x"},
        {"from_ref": "no-such-tag", "to_ref": "nor this"},
    ],
)
async def test_revisions_that_are_none_get_a_sentence(deps: Deps, args: dict[str, Any]) -> None:
    outcome = await deps.tools.call("repository_log", args, deps)

    assert not outcome.ok
    assert outcome.text.startswith("There is no tag, branch or commit")


async def test_commits_between_two_tags_are_listed(tmp_path: Path) -> None:
    repository = GitRepo(tmp_path / "shop")
    for number in range(1, 5):
        repository.write("a.py", f"x = {number}\n")
        repository.commit(f"Set it to {number}")
        repository.git("tag", f"v{number}.0")
    async with pinned(repository, tmp_path / "home") as code:
        outcome = await call(make_deps(code), "repository_log", from_ref="v1.0", to_ref="v3.0", changed_text="x = 3")
        cut = await call(make_deps(code), "repository_log", limit=2)

    assert "1 commits, merges left out after v1.0 up to v3.0." in outcome.text
    assert "Set it to 3 [a.py]" in outcome.text
    assert "2 of 4 commits" in cut.text
    assert "For older ones ask with until = 2023-11-14." in cut.text


async def test_a_file_is_compared_whole_without_what_only_checkers_read(tmp_path: Path) -> None:
    repository = GitRepo(tmp_path / "shop")
    old = [f"value_{n} = make({n})  # type: ignore" if n % 5 == 2 else f"value_{n} = {n}" for n in range(80)]
    repository.write("a.py", "\n".join(old) + "\n")
    repository.commit("One")
    repository.git("tag", "v1.0")
    new = [line.removesuffix("  # type: ignore") for line in old]
    new[40:41] = ["def added(x):", *(f"    step_{n}(x)" for n in range(35)), "    return x"]
    repository.write("a.py", "\n".join(new) + "\n")
    repository.commit("Two")
    async with pinned(repository, tmp_path / "home") as code:
        outcome = await call(make_deps(code), "compare_refs", from_ref="v1.0", path="a.py")

    assert "1 file changed, +53 −17 lines." in outcome.text
    assert "   77     return x" in outcome.text
    assert "type: ignore" not in outcome.text
    assert "yes" not in outcome.text.splitlines()[0]


async def test_calls_that_may_mean_something_else_are_only_possible(tmp_path: Path) -> None:
    async with indexed(FILES, tmp_path) as code:
        outcome = await call(make_deps(code), "get_callers", function_name="File.close")
    certain, possible = outcome.text.split("Possibly calls of it")

    assert "File.close (bases.py:7-8): 2" in certain
    assert "use 2 times: file.close(); file.close()" in certain
    assert "thing.close()" in possible
    assert places(outcome) == ["calls.py:5-5", "calls.py:6-6"]


async def test_a_receiver_that_could_be_of_very_many_classes_is_possible_too(tmp_path: Path) -> None:
    many = "".join(f"class C{n}:\n    def get(self):\n        pass\n\n\n" for n in range(40))
    async with indexed({"many.py": many, "use.py": "def use(it):\n    return it.get()\n"}, tmp_path) as code:
        outcome = await call(make_deps(code), "get_callers", function_name="C1.get")
        known = await code.callers("C1.get")

    assert "Possibly calls of it" in outcome.text
    assert (places(outcome), known) == (["use.py:2-2"], [])


RANGES = st.tuples(st.integers(1, 5000), st.integers(0, 300))


@given(st.lists(RANGES, min_size=1, max_size=12))
def test_ranges_are_merged_without_losing_or_adding_a_line(ranges: list[tuple[int, int]]) -> None:
    wanted = {line for start, more in ranges for line in range(start, start + min(more + 1, MAX_LINES))}
    merged = parse_ranges([f"{start}-{start + more}" for start, more in ranges])

    assert {line for start, end in merged for line in range(start, end + 1)} == wanted
    assert all(end + 1 < start for (_, end), (start, _) in pairwise(merged))


@given(st.text(alphabet="abLl-:,. \n", max_size=12))
def test_what_holds_no_number_is_no_range(written: str) -> None:
    with pytest.raises(ValueError, match="is no range of lines"):
        parse_ranges([written])
