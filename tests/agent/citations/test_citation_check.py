"""A model that cites what it should not: none of it passes for verified, and nothing that is right is lost."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.citations.citation_check import UNSOURCED, UNVERIFIED, CheckedAnswer, examine_citations
from agent.citations.citation_fit import Doubt
from agent.citations.claims import find_names
from agent.evidence.refs import make_lines_ref
from agent.ports import Deps
from agent.prompts.model_text import CitationParser
from agent.prompts.prompt_evidence import load_prompt_evidence
from agent.state import CitationRef, to_citation, to_location
from agent.text.citation_markers import find_markers, replace_markers
from indexer.types import Location
from tests.agent.conftest import Told, redact
from tests.fakes.code import FakeCode
from tests.fakes.shop import SHOP

READ = [
    make_lines_ref(Location(path="shop/dates.py", start_line=6, end_line=8), "definition"),
    make_lines_ref(Location(path="shop/dates.py", start_line=11, end_line=13), "definition"),
    make_lines_ref(Location(path="shop/payments.py", start_line=19, end_line=35), "hit"),
]
PARSE, FORMAT, SEND = ("shop/dates.py", 6, 8), ("shop/dates.py", 11, 13), ("shop/payments.py", 19, 35)

NO_SOURCE = f"{UNSOURCED}: this cites nothing that was read for this answer."
NOT_READ = f"{UNVERIFIED}: names or numbers of this are missing from the cited lines, which were not read again."

Place = tuple[str, int, int]


async def examined(*arguments: Any, **details: Any) -> CheckedAnswer:
    """What becomes of an answer of a model where nobody reads again what is in doubt."""
    return (await examine_citations(*arguments, **details)).settle()


async def checked(written: str) -> tuple[str, list[Place]]:
    """What becomes of a model's text: its marks made, and checked."""
    code = FakeCode({path: text for path, text in SHOP.items() if path != "shop/gone.py"})
    shown = await load_prompt_evidence(Deps(code=code, redact=redact, emit=Told()), READ)
    maker = CitationParser(shown, redact)
    text = maker.prose(written)
    result = await examined(text, maker.citations, [one.ref for one in shown], code, by_model=True)
    assert list(dict.fromkeys(mark.number for mark in find_markers(result.text))) == [
        one["mark"] for one in result.citations
    ]
    return result.text, [(one["path"], one["start_line"], one["end_line"]) for one in result.citations]


@pytest.mark.parametrize(
    ("cited", "kept"),
    [
        ("E1", PARSE),
        ("E1:7-8", ("shop/dates.py", 7, 8)),
        ("shop/dates.py:6-8", PARSE),
        ("shop/dates.py:L6-L8", PARSE),
        ("dates.py:6-8", PARSE),  # one file that was read ends like that
        ("E1:6-40", PARSE),  # cut to what was read
    ],
)
async def test_a_right_citation_is_kept(cited: str, kept: Place) -> None:
    assert await checked(f"`parse_date` reads `date.fromisoformat` of the text [{cited}].") == (
        "`parse_date` reads `date.fromisoformat` of the text [1].",
        [kept],
    )


@pytest.mark.parametrize(
    "cited",
    [
        "E9",  # no such evidence
        "shop/nowhere.py:6-8",  # a wrong path
        "shop/gone.py:1-2",  # a deleted file
        "/etc/passwd:1",
        "shop/orders.py:7-16",  # there, but never read
        "shop/dates.py:1-3",  # lines never read
        "shop/dates.py:9000-9001",  # beyond the end
        "shop/dates.py:8-6",  # backwards
        "shop/dates.py:0",
        "E1:9000",
    ],
)
async def test_a_wrong_citation_is_dropped_and_its_claim_marked(cited: str) -> None:
    text, citations = await checked(f"The holidays come from `load_holidays` [{cited}].")

    assert (text, citations) == (f"The holidays come from `load_holidays` {UNSOURCED}.\n\n{NO_SOURCE}", [])


@pytest.mark.parametrize(
    ("sentence", "cited", "place"),
    [
        ("A date is read by `parse_date` with `fromisoformat`", "E3", SEND),
        ("The holidays come from `load_holidays`", "E3:20-22", ("shop/payments.py", 20, 22)),
        ("The holidays come from `load_holidays`", "shop/payments.py:1-99999", SEND),  # cut to what was read
        ("`send` tries 17 times", "E3", SEND),
        ("`send` answers with status 429", "E3", SEND),
        ("`parse_date` is signed with HMAC", "E1", PARSE),
        ("Payments are sent with growing delays", "E1", PARSE),
    ],
)
async def test_what_its_lines_contradict_stays_where_it_is_with_a_word(sentence: str, cited: str, place: Place) -> None:
    text, citations = await checked(f"{sentence} [{cited}].")

    assert (text, citations) == (f"{sentence} [1] {UNVERIFIED}.\n\n{NOT_READ}", [place])


async def test_a_paraphrase_of_a_short_line_is_no_lie() -> None:
    admin = "class ModelAdmin:\n    list_display = ('__str__',)\n    list_editable = ()\n    list_filter = ()\n"
    setting: CitationRef = {"mark": 1, "path": "options.py", "start_line": 3, "end_line": 3}
    whole: CitationRef = {"mark": 2, "path": "options.py", "start_line": 1, "end_line": 4}
    text = "It is set by `ModelAdmin.list_editable`, which is empty by default [1]."

    result = await examined(text, [setting], [setting, whole], FakeCode({"options.py": admin}), by_model=True)

    assert (result.text, result.citations) == (text, [setting])


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("status = http.StatusTooManyRequests", "Whoever asks too often gets status 429"),
        ("is_short = size < 0xff", "Below 255 bytes a short head will do"),
        ("limit = 1 << 32", "More than 4 GiB are refused"),
        ("timeout = 90_000", "It gives up after 90 seconds"),
        ("skip(git_exclude)", "`.git/info/exclude` is read by `git_exclude`"),
        ("status = 101 if upgraded else status", "HTTP\u306e\u63a5\u7d9a\u4e2d\u306f101\u3092\u8fd4\u3059"),
        ("value, sig = signed.rsplit(sep, 1)", "The value and its signature are separated at the last separator"),
        ("rest = text.split(',')", "It splits at commas now"),
    ],
)
async def test_what_lines_say_in_other_words_is_no_contradiction(line: str, sentence: str) -> None:
    before = "def verify_signature(http, old):\n    # What was separated now is refused.\n    value = old.split('|')\n"
    cited: CitationRef = {"mark": 1, "path": "a.py", "start_line": 6, "end_line": 6}
    whole: CitationRef = {"mark": 2, "path": "a.py", "start_line": 1, "end_line": 6}
    code = FakeCode({"a.py": f"{before}\n\n    {line}\n"})

    assert (await examined(f"{sentence} [1].", [cited], [cited, whole], code, by_model=True)).text == f"{sentence} [1]."


async def test_a_mark_in_a_table_leads_where_it_was_written() -> None:
    text, citations = await checked(
        "| Function | Calls | Waits |\n|---|---|---|\n| `parse_date` | `fromisoformat` [E1:7-8] | no |\n"
        "| `send` | `parse_date` nowhere | doubles its delay [E3:24-26] |"
    )

    assert "unverified" not in text
    assert citations == [("shop/dates.py", 7, 8), ("shop/payments.py", 24, 26)]


async def test_a_commit_is_compared_with_its_message() -> None:
    fix = Location(path="", start_line=0, end_line=0, commit="a" * 40)
    other = Location(path="", start_line=0, end_line=0, commit="b" * 40)
    refs = [to_citation(1, fix), to_citation(2, other)]
    past = {fix: "2026-03-04, Ada\nGuard against a missing session", other: "2026-03-01, Bob\nDrop Python 3.8"}
    text = "Ada guarded against a missing session in 2026 [1]. Support of Python 3.8 ended [1]. `old_key` went [2]."

    result = await examined(text, refs, refs, FakeCode(SHOP), by_model=True, past=past)

    assert result.text.partition("\n")[0] == (
        f"Ada guarded against a missing session in 2026 [1]. Support of Python 3.8 ended [1] {UNVERIFIED}. "
        f"`old_key` went [2] {UNVERIFIED}."
    )


async def test_no_repair_where_two_places_could_be_meant() -> None:
    text, citations = await checked("Both take a `date` [E9].")

    assert (text, citations) == (f"Both take a `date` {UNSOURCED}.\n\n{NO_SOURCE}", [])


async def test_right_and_wrong_citations_of_one_claim_are_told_apart() -> None:
    text, citations = await checked(
        "`parse_date` strips [E1, E7] and `format_date` does not [E2][E8]. `send` waits [E3]."
    )

    assert text == "`parse_date` strips [1] and `format_date` does not [2]. `send` waits [3]."
    assert citations == [PARSE, FORMAT, SEND]


async def test_a_mark_after_the_full_stop_belongs_to_the_sentence_before() -> None:
    text, _ = await checked("`parse_date` strips. [E1] `format_date` does not. [E2]\n\n- `send` retries\n  [E3]")

    assert text == "`parse_date` strips. [1] `format_date` does not. [2]\n\n- `send` retries\n  [3]"


@pytest.mark.parametrize("sentence", ["Elefanten tanzen um Mitternacht", "\u65e5\u671f\u6765\u81ea\u6587\u672c", "!"])
async def test_words_that_nothing_shown_has_speak_neither_for_nor_against_its_lines(sentence: str) -> None:
    assert (await checked(f"{sentence} [E1:7-8]."))[1] == [("shop/dates.py", 7, 8)]


async def test_the_path_and_the_definition_around_the_lines_count_as_said() -> None:
    assert (await checked("In `shop/payments.py`, `send` does the rest [E3:30-31]."))[1] == [
        ("shop/payments.py", 30, 31)
    ]


async def test_a_precise_range_stays_as_it_is_beside_the_whole() -> None:
    assert (await checked("`send` waits [E3:24-26], and retries [E3]."))[1] == [("shop/payments.py", 24, 26), SEND]


async def test_each_of_several_citations_of_a_claim_says_a_part_of_it() -> None:
    assert (await checked("`format_date` writes what `parse_date` reads with `fromisoformat` [E1][E2]."))[1] == [
        PARSE,
        FORMAT,
    ]


async def test_a_part_is_less_than_one_citation_alone_has_to_say() -> None:
    sentence = "`parse_date` reads what `format_date` wrote, by the delay of `send`"

    assert (await checked(f"{sentence} [E1][E2][E3]."))[1] == [PARSE, FORMAT, SEND]


async def test_a_long_file_that_was_read_is_cited_as_a_whole() -> None:
    lines = "\n".join(f"value_{number} = {number}" for number in range(1, 301))
    whole: CitationRef = {"mark": 1, "path": "long.py", "start_line": 1, "end_line": 300}

    code = FakeCode({"long.py": lines})

    result = await examined("It sets `value_7` [1].", [whole], [whole], code, by_model=True)

    assert (result.citations, result.dropped) == ([whole], 0)


async def test_what_became_of_each_citation_is_told() -> None:
    refs = [to_citation(1, to_location(READ[0])), to_citation(2, to_location(READ[2]))]
    code = FakeCode(SHOP)

    result = await examined(
        "`parse_date` strips [1]. `format_date` [2]. `nobody_knows` [2].", refs, READ, code, by_model=True
    )

    assert [place and place.path for place in result.places] == ["shop/dates.py", *["shop/payments.py"] * 2]
    assert result.doubts == [Doubt.NONE, Doubt.CONTRADICTED, Doubt.CONTRADICTED]
    assert result.dropped == 0


async def test_the_same_mark_may_hold_here_and_not_there() -> None:
    text, citations = await checked("`parse_date` strips [E1]. `unheard_of` too [E1].")

    assert text == f"`parse_date` strips [1]. `unheard_of` too [1] {UNVERIFIED}.\n\n{NOT_READ}"
    assert citations == [PARSE]


@pytest.mark.parametrize(
    ("cited", "left"),
    [
        ("[E2][E3] and [E9]", " [1][2]."),
        ("[E9] and [E2]", " [1]."),
        ("[E2], [E3], and [E9]", " [1], [2]."),
        ("[E2], [E9] und [E3]", " [1] [2]."),
        ("[E2] and the rest by name [E9]", " [1] and the rest by name."),
    ],
)
def test_a_list_of_marks_leaves_no_loose_words_where_one_is_taken_out(cited: str, left: str) -> None:
    kept = {"E2": "[1]", "E3": "[2]", "E9": ""}
    written = cited.replace("[E2]", "[2]").replace("[E3]", "[3]").replace("[E9]", "[9]")
    new = [kept[f"E{mark.number}"] for mark in find_markers(written)]

    assert replace_markers(f"It waits {written}.", new) == f"It waits{left}"


async def test_marks_in_code_stay_and_lists_agree() -> None:
    text, citations = await checked("`x[1]` is `send` [E3] and [E3:24-26].")

    assert (text, citations) == ("`x[1]` is `send` [1] and [2].", [SEND, ("shop/payments.py", 24, 26)])


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("`Session.send` in `a/b.py` calls it [1]", {"send"}),
        ("see parse_date() and MAX_RETRIES", {"parse_date", "max_retries"}),
        ("the file setup.py is read", {"setup", "py"}),
        ("`setup.py` is read", set()),
        ("`self.x` and `def`", {"x"}),
        ("plain words only.", set()),
    ],
)
def test_a_claim_is_read_by_its_names(sentence: str, names: set[str]) -> None:
    assert find_names(sentence) == names


@given(st.text(st.sampled_from("ab `[]()E123:-\n.*~ shop/dates.py"), max_size=150))
async def test_any_text_keeps_marks_and_list_in_step(text: str) -> None:
    await checked(text)


@pytest.mark.parametrize("word", ["a", "a.", "a/", "aA", "`", "`a` ", "x[E1]"])
async def test_a_long_answer_is_checked_in_a_moment(word: str) -> None:
    started = time.thread_time()
    await checked((word * 16_000)[:16_000] + " [E1]" * 8)
    assert time.thread_time() - started < 2


async def test_a_turn_that_read_much_is_checked_in_a_moment() -> None:
    files = {f"f{number}.py": "value = compute(first, second)\n" * 1_000 for number in range(12)}
    refs = [to_citation(at, Location(path=path, start_line=1, end_line=1_000)) for at, path in enumerate(files, 1)]
    text = " ".join(f"`value{at}` is what compute makes of the first {at} [{at % 12 + 1}]." for at in range(600))

    started = time.process_time()
    await examined(text, refs, refs, FakeCode(files), by_model=True)
    assert time.process_time() - started < 10
