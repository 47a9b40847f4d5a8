"""By what a sentence and lines of code are compared: what it quotes, whose names it says, and words side by side."""

from __future__ import annotations

import pytest

from agent.citations.citation_fit import EvidenceFit, Exhibit
from agent.citations.claims import Claim
from indexer.types import Location


def exhibit(path: str, text: str, *names: str) -> Exhibit:
    lines = text.split("\n")
    return Exhibit(location=Location(path=path, start_line=1, end_line=len(lines)), lines=lines, names=names)


OPTIONS = [
    exhibit("one.py", "# the command is run\nflags = ['-0', '{/}']\nrun(flags)"),
    exhibit("all.py", "# the command is run\nflags = ['-1', '{}']\nrun(flags)"),
]
METHODS = [
    exhibit("session.py", "def close(self):\n    stop()", "Session", "Session.close"),
    exhibit("pool.py", "def close(self):\n    stop()", "Pool", "Pool.close"),
]
FILTERS = [
    exhibit("base.rb", "def filter!(type)\n  run(type)\nend", "Base.filter!"),
    exhibit("reloader.rb", "def add(filter)\n  filter(1)\n  run(filter)\nend", "Reloader.add"),
]
PAIRS = [
    exhibit("limit.py", "# the body limit of a request\ncheck(limit)"),
    exhibit("other.py", "# the limit of a path, and how the body of it is read\ncheck(body)"),
]


@pytest.mark.parametrize(
    ("sentence", "exhibits"),
    [
        ("The command is run with `-0`", OPTIONS),
        ("The command takes `{/}`", OPTIONS),
        ("`Session.close` stops it", METHODS),
        ("It ends with `Session::close()`", METHODS),
        ("`filter!` runs them", FILTERS),
        ("It has a body limit", PAIRS),
    ],
)
def test_the_lines_that_say_it_exactly_fit_best(sentence: str, exhibits: list[Exhibit]) -> None:
    claim = Claim(words=sentence, sentence=sentence)
    fit = EvidenceFit(exhibits[::-1], [claim])
    right, wrong = (fit.rate(claim, one.location) for one in exhibits)

    assert right > 0.9
    assert wrong < right - 0.15


def test_a_name_in_a_code_span_is_weighed_as_a_name_alone() -> None:
    claim = Claim(words="`close` stops", sentence="`close` stops")
    fit = EvidenceFit(METHODS, [claim])

    assert fit.rate(claim, METHODS[0].location) == fit.rate(claim, METHODS[1].location)
