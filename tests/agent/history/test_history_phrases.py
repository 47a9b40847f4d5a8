"""Phrases for times, changelogs and past events are read as people mean them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agent.history.changes import find_section, list_sections
from agent.history.history_target import find_target, strip_nouns
from agent.questions.asked_times import parse_period
from tests.fakes.code import FakeCode

NOW = int(datetime(2024, 5, 15, 12, 30, tzinfo=UTC).timestamp())  # a Wednesday


@pytest.mark.parametrize(
    ("written", "day"),
    [
        ("today", "2024-05-15"),
        ("Yesterday", "2024-05-14"),
        ("this week", "2024-05-13"),
        ("last week", "2024-05-08"),
        ("the last 3 days", "2024-05-12"),
        ("the past two months", "2024-03-16"),
        ("a few days ago", "2024-05-12"),
        ("a year ago", "2023-05-16"),
        ("in the last couple of weeks", "2024-05-01"),
        ("2024-02-29", "2024-02-29"),
        ("2023", "2023-01-01"),
        ("2023/11", "2023-11-01"),
        ("monday", "2024-05-13"),
        ("last wednesday", "2024-05-08"),
        ("May", "2024-05-01"),
        ("October", "2023-10-01"),
        ("Jan 3, 2022", "2022-01-03"),
    ],
)
def test_a_time_is_read_as_the_day_it_began(written: str, day: str) -> None:
    start = parse_period(written, NOW)

    assert start is not None
    assert datetime.fromtimestamp(start, UTC).date().isoformat() == day


@pytest.mark.parametrize("written", ["", "1.2", "v2", "2024-02-30", "0001", "the release", "9999999999", "soon"])
def test_what_is_no_time_is_left_alone(written: str) -> None:
    assert parse_period(written, NOW) is None


@pytest.mark.parametrize(
    ("text", "sections"),
    [
        (
            "# Changes\n\n## [Unreleased]\n\n## [1.2.0] - 2024-01-01\n\n- b\n\n\n## 1.1\n- a\n",
            [("", 3, 3), ("1.2.0", 5, 7), ("1.1", 10, 11)],
        ),
        ("Notes\n=====\n\nShop 2.1.0 (2024)\n-----------------\n\n- b\n\nFixes\n~~~~~\n- x 1.1\n", [("2.1.0", 4, 11)]),
        ("1.2.0\n\n- b\n1.1 2023-01-01\n- a\n", [("1.2.0", 1, 3), ("1.1", 4, 5)]),
        ("# v10.2.0\n\n## Features\n\n- needs 3.1 of it\n\n# v10.1.0\n", [("10.2.0", 1, 5), ("10.1.0", 7, 7)]),
        ("", []),
        ("See docs/news.rst.\n", []),
    ],
)
def test_the_sections_of_a_changelog_are_found(text: str, sections: list[tuple[str, int, int]]) -> None:
    assert [(one.version, one.start_line, one.end_line) for one in list_sections(text.split("\n"))] == sections


async def test_a_file_that_only_points_to_the_changelog_is_passed_over() -> None:
    code = FakeCode(
        {
            "NEWS.md": "See docs/news.md.\n",
            "docs/news.md": "# News\n\n## Unreleased\n\n## 1.2\n\n- b\n\n## 1.1\n\n- a\n",
        }
    )

    newest, named, unknown = [await find_section(code, version) for version in ("", "v1.1.0", "9.9")]

    assert newest is not None
    assert named is not None
    assert (newest[0].path, newest[0].start_line, newest[1]) == ("docs/news.md", 5, "1.2")
    assert (named[0].start_line, named[0].end_line) == (9, 11)
    assert unknown is None


@pytest.mark.parametrize(
    ("written", "bare"),
    [
        ("the walk function", "walk"),
        ("the file `src/app.py`", "src/app.py"),
        ("our docs folder", "docs"),
        ("the --exec-batch flag", "--exec-batch"),
        ("this class", "class"),
        ("the code", "code"),
        ("", ""),
    ],
)
def test_articles_and_kinds_of_things_are_left_out(written: str, bare: str) -> None:
    assert strip_nouns(written) == bare


@pytest.mark.parametrize(
    ("written", "path", "symbol", "text"),
    [
        ("shop/pay.py", "shop/pay.py", "", ""),
        ("pay.py", "shop/pay.py", "", ""),
        ("the shop folder", "shop", "", ""),
        ("the refund function", "shop/pay.py", "refund", ""),
        ("this project", "", "", ""),
        ("shop", "", "", ""),
        ("the --dry-run option", "", "", "dry-run"),
        ("MAX_REFUNDS", "", "", "MAX_REFUNDS"),
    ],
)
async def test_what_is_meant_is_found(written: str, path: str, symbol: str, text: str) -> None:
    code = FakeCode({"shop/pay.py": "def pay():\n    return 1\n\n\ndef refund():\n    return 2\n"})
    code.repository = "shop" if written == "shop" else "demo"

    target = await find_target(code, written)

    assert target is not None
    assert (target.path, target.symbol, target.text) == (path, symbol, text)


async def test_words_that_nothing_holds_mean_nothing() -> None:
    assert await find_target(FakeCode({"shop/pay.py": "def pay():\n    return 1\n"}), "the quantum scheduler") is None
