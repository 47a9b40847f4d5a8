"""Evidence in prompts: the lines that bear on the question, each once, under numbers that stay."""

from __future__ import annotations

from collections.abc import Sequence

from agent.evidence.refs import make_lines_ref
from agent.ports import Deps
from agent.prompts.prompt_evidence import EXACT_CHARS, MAX_CHARS, EvidenceNumbers, PromptEvidence, load_prompt_evidence
from agent.state import EvidenceRef, Role
from indexer.types import Location
from tests.agent.conftest import Told, redact
from tests.fakes.code import FakeCode

PUMP = '''import time


class Pump(
    Base,
):
    """
    Moves water.

    At length.
    """

    def prime(self):
        """Fill the pipe."""
        self.pressure = 2
        return self.pressure
'''
LONG = "\n".join(f"filler_{at} = {at}" for at in range(400))


def make_deps(**texts: str) -> Deps:
    """Code whose files are the texts."""
    code = FakeCode({f"{name}.py": text for name, text in texts.items()})
    return Deps(code=code, redact=redact, emit=Told())


def ref(path: str, start: int, end: int, role: Role = "hit", **known: str | float) -> EvidenceRef:
    """Lines of a file as evidence."""
    made = make_lines_ref(Location(path=path, start_line=start, end_line=end), role)
    return {**made, **known}  # type: ignore[typeddict-item]


def list_places(shown: Sequence[PromptEvidence]) -> list[tuple[str, int, int]]:
    """The lines of each exhibit, in order."""
    return [(one.location.path, one.location.start_line, one.location.end_line) for one in shown]


async def test_overlapping_ranges_are_shown_as_one() -> None:
    shown = await load_prompt_evidence(make_deps(long=LONG), [ref("long.py", 10, 20), ref("long.py", 15, 30)])

    assert list_places(shown) == [("long.py", 10, 30)]
    assert shown[0].text.count("filler_17 ") == 1


async def test_of_a_class_around_a_hit_its_header_and_first_sentence_are_shown() -> None:
    parent = ref("pump.py", 4, 16, "parent", symbol="Pump", signature="class Pump(Base)")

    shown = await load_prompt_evidence(make_deps(pump=PUMP), [ref("pump.py", 13, 16), parent])

    assert list_places(shown) == [("pump.py", 13, 16), ("pump.py", 4, 8)]


async def test_the_header_of_what_is_not_shown_is_left_out() -> None:
    parent = ref("pump.py", 4, 16, "parent", symbol="Pump", signature="class Pump(Base)")

    shown = await load_prompt_evidence(make_deps(pump=PUMP, long=LONG), [ref("long.py", 1, 2), parent])

    assert list_places(shown) == [("long.py", 1, 2)]


async def test_a_long_definition_is_cut_around_the_words_of_the_question() -> None:
    body = [f"    value_{at} = compute({at})" for at in range(190)]
    body[150] = "    raise ValveStuck(pressure)"
    text = "\n".join(["def open_valve(pressure):", '    """Open it."""', *body])
    found = ref("valve.py", 1, 192, "definition", symbol="open_valve", signature="def open_valve(pressure)")

    shown = await load_prompt_evidence(make_deps(valve=text), [found], question="when is the valve stuck?")

    assert shown[0].text.startswith("1: def open_valve(pressure):\n2:     ")
    assert any("153:     raise ValveStuck(pressure)" in one.text for one in shown)
    assert not any("60:     value_57" in one.text for one in shown)


async def test_a_search_fills_no_more_than_its_room() -> None:
    hits = [ref(f"file{at}.py", 1, 60, score=30.0 - at) for at in range(30)]

    shown = await load_prompt_evidence(make_deps(**{f"file{at}": LONG for at in range(30)}), hits)

    assert sum(len(one.heading) + len(one.text) for one in shown) <= MAX_CHARS
    assert shown[0].location == Location(path="file0.py", start_line=1, end_line=60)


async def test_a_hit_far_below_the_best_is_left_out() -> None:
    hits = [ref("best.py", 1, 5, score=1.0), ref("weak.py", 1, 30, score=0.1)]

    shown = await load_prompt_evidence(make_deps(best=LONG, weak=LONG), hits)

    assert list_places(shown) == [("best.py", 1, 5)]


async def test_a_test_never_leads_where_there_is_code() -> None:
    hits = [ref("test_a.py", 1, 5, score=1.0, source_type="test"), ref("a.py", 1, 5, score=0.9, source_type="code")]

    shown = await load_prompt_evidence(make_deps(a=LONG, test_a=LONG), hits)

    assert list_places(shown) == [("a.py", 1, 5), ("test_a.py", 1, 5)]


async def test_what_a_tool_read_is_whole_however_much_a_search_found() -> None:
    hits = [ref(f"file{at}.py", 1, 60) for at in range(30)]
    read = ref("read.py", 100, 299, "lines")
    texts = {f"file{at}": LONG for at in range(30)}

    shown = await load_prompt_evidence(make_deps(read=LONG, **texts), [*hits, read])

    assert ("read.py", 100, 299) in list_places(shown)


async def test_what_was_read_is_cut_where_its_room_ends() -> None:
    wide = "\n".join("x" * 390 for _ in range(200))

    shown = await load_prompt_evidence(make_deps(wide=wide), [ref("wide.py", 1, 200, "lines")])

    assert len(shown) == 1
    assert 0.9 * EXACT_CHARS < len(shown[0].text) <= EXACT_CHARS


async def test_a_file_that_was_asked_for_is_outlined_with_the_parts_that_bear_on_the_question() -> None:
    functions = "\n\n".join(f"def step_{at}(x):\n    y = x\n    return y" for at in range(20))
    text = f"{functions}\n\ndef open_valve(x):\n    y = x\n    return y"
    members = [
        ref("steps.py", 4 * at + 1, 4 * at + 3, "definition", symbol=f"step_{at}", signature=f"def step_{at}(x)")
        for at in range(20)
    ]
    valve = ref("steps.py", 81, 83, "definition", symbol="open_valve", signature="def open_valve(x)")

    shown = await load_prompt_evidence(
        make_deps(steps=text), [ref("steps.py", 1, 2, "file"), *members, valve], question="what opens the valve?"
    )

    assert ("steps.py", 81, 83) in list_places(shown)
    assert ("steps.py", 77, 77) in list_places(shown)


async def test_numbers_stay_the_same_over_the_rounds_of_a_turn() -> None:
    deps = make_deps(long=LONG, pump=PUMP)
    first = EvidenceNumbers([])
    first.number_evidence(await load_prompt_evidence(deps, [ref("long.py", 10, 20), ref("pump.py", 13, 16)]))

    second = EvidenceNumbers(first.places)
    shown = second.number_evidence(await load_prompt_evidence(deps, [ref("pump.py", 13, 16), ref("long.py", 50, 60)]))

    assert [one.number for one in shown] == [2, 3]
    assert [one["mark"] for one in second.places] == [1, 2, 3]


def test_a_line_is_never_replaced_by_the_id_that_it_stands_under() -> None:
    numbers = EvidenceNumbers([])
    first = numbers.assign(Location(path="a.py", start_line=5, end_line=5))
    text = "[a.py:L5] the_only_line_that_says_it()"

    written = numbers.number_result(text, [ref("a.py", 5, 5, "mention")], told=numbers.places)

    assert written == f"[E{first}] a.py:L5 the_only_line_that_says_it()"


async def test_a_commit_has_one_id_for_all_that_is_known_of_it() -> None:
    commit = ref("", 0, 0, "commit", symbol="Fix the pump", signature="2026-01-02, Ada", commit="c" * 40)
    person = ref("", 0, 0, "entry", symbol="Ada", commit="c" * 40, doc="12 commits")
    at = Location(path="", start_line=0, end_line=0, commit="c" * 40)
    shown = await load_prompt_evidence(make_deps(), [commit, person], facts={at: ["40 commits."]})

    assert [one.location for one in EvidenceNumbers([]).number_evidence(shown)] == [at]
    assert shown[0].text == "Fix the pump\n\nAda\n12 commits\nKnown of the history up to this commit: 40 commits."
