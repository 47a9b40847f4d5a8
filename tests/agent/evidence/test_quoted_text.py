"""A message that somebody saw leads to the place that it comes from, whatever was filled in when it was shown."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.evidence.requests import request_lookup
from agent.kinds.fetching import fetch_evidence
from agent.text.message_match import MAX_PATTERN, is_confident_match, make_line_patterns, match_message
from indexer.generations.grep import grep_texts
from indexer.types import Matches
from tests.fakes.code import FakeCode

RAISING = """\
class Query:
    def resolve(self, name, choices):
        raise FieldError(
            "Cannot resolve keyword '%s' into field. "
            "Choices are: %s" % (name, ", ".join(choices))
        )
"""
NEAR = 'def check(name):\n    raise FieldError(f"Cannot resolve expression {name}")\n'
TALK = "Cannot keyword field choices resolve. Fields, keywords, choices: how to resolve them.\n" * 5


def project() -> FakeCode:
    pages = {f"docs/page_{number}.md": f"# Fields {number}\n\n{TALK}" for number in range(40)}
    return FakeCode({**pages, "orm/query.py": RAISING, "orm/near.py": NEAR, "tests/test_query.py": RAISING})


async def test_what_is_filled_in_does_not_hide_where_a_message_comes_from() -> None:
    seen = "Cannot resolve keyword 'customer_name' into field. Choices are: id, placed"
    found = await fetch_evidence(project(), request_lookup("message", seen, reasoning="a test"))

    assert [(ref["path"], ref["start_line"], ref["symbol"]) for ref in found.refs[:2]] == [
        ("orm/query.py", 2, "Query.resolve"),
        ("tests/test_query.py", 2, "Query.resolve"),
    ]
    assert (found.totals["said"], found.totals["filled"]) == (2, 1)


async def test_a_message_that_stands_as_it_was_seen_is_not_said_to_be_filled_in() -> None:
    found = await fetch_evidence(project(), request_lookup("message", "cannot resolve expression", reasoning="a test"))

    assert (found.refs[0]["path"], found.refs[0]["start_line"]) == ("orm/near.py", 1)
    assert (found.totals["said"], found.totals["filled"]) == (1, 0)


@pytest.mark.parametrize("message", ["The moon is made of green cheese today", "", "!?", "1 2 3"])
async def test_a_message_that_no_code_holds_is_not_claimed(message: str) -> None:
    found = await fetch_evidence(project(), request_lookup("message", message, reasoning="a test"))

    assert found.totals["said"] == 0


@pytest.mark.parametrize(
    ("message", "code", "share"),
    [
        ("payment 17 was refused 3 times", 'f"payment {number} was refused {count} times"', 4 / 6),
        ('Cannot index number with "foo"', '"Cannot index %s with \\"%s\\""', 3 / 5),
        ("View is overwriting a view: index", "raise E(\n  'View is overwriting'\n  f' a view: {name}'\n)", 5 / 6),
        ("order was refused by the bank", 'raise E("order was refused"\n  " by the bank")', 1),
        ("first line second line", r'"first line\nsecond line"', 1),
        ("not found", "Not found!", 1),
        ("a b c", "a b d", 0),
    ],
)
def test_words_count_where_they_stand_side_by_side(message: str, code: str, share: float) -> None:
    assert match_message(message, code).share == pytest.approx(share)


def test_words_that_are_scattered_over_a_file_make_no_message() -> None:
    scattered = "\n".join(["# the plugin did", *["pass"] * 9, "# not start in", *["pass"] * 9, "# in time, however"])
    message = "the plugin did not start in time however"

    assert not is_confident_match(message, match_message(message, scattered))
    assert is_confident_match(message, match_message(message, f"{scattered}\nraise E('{message}')"))


def test_a_match_says_on_which_lines_it_stands() -> None:
    table = "\n".join(f'E_{number}: make("Nothing of this number {number}", {number}),' for number in range(40))
    broken = f'{table}\nBODY: make(\n  "Request body is "\n  "too large",\n  413\n),\n{table}'

    match = match_message("Request body is too large", broken)

    assert (match.share, match.start, match.end) == (1.0, 41, 42)


@given(message=st.text(max_size=400), code=st.text(max_size=200))
@example(message="(a|b)* [c] \\d {2,}" * 40, code="")
@example(message="İstanbul straße ﬁnd ǅ" * 9, code="İstanbul straße ﬁnd ǅ")
def test_any_message_makes_patterns_that_can_be_searched_for(message: str, code: str) -> None:
    for pattern in make_line_patterns(message):
        assert len(pattern) <= MAX_PATTERN + 10
        grep_texts([("a.py", code)], pattern, limit=5)
    assert 0 <= match_message(message, code).share <= 1


async def test_a_search_that_takes_too_long_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    code, searched = project(), []

    async def slow(pattern: str, *, path: str = "", limit: int = 50) -> Matches:
        searched.append(pattern)
        return Matches(lines=(), files_searched=1, complete=False)

    monkeypatch.setattr(code, "grep", slow)
    await fetch_evidence(
        code, request_lookup("message", "nothing of all this was ever written anywhere", reasoning="a test")
    )

    assert len(searched) == 2  # once for runs of three words, and once for two
