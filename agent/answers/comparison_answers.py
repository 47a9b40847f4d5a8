"""Answers what differs between two commits: the commits, the files with their lines, and the places that tell most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from agent.answers.extractive_builder import AnswerBuilder, AnswerContext, AnswerSubject
from agent.answers.history_answers import format_commit, quote_section
from agent.history.commit_refs import describe_updates, divide_commits
from agent.history.comparison import ADDED, FILE, REMOVED
from agent.state import Continuation, EvidenceRef, to_location
from agent.text.code_lines import dedent
from agent.text.escaping import (
    format_code_block,
    format_code_span,
    format_count,
    join_words,
    replace_control_characters,
    to_one_line,
)

PAGE = 6  # commits, and files, of one answer
PLACES = 4
_LINES = 14  # of each side of a place
_LONGEST_LINE = 160


async def write_comparison(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write what was compared and what of it counts: a page of commits, of files and of places."""
    commits, updates = divide_commits(material.of("commit"))
    changes = material.of("change")
    files = [ref for ref in changes if ref["kind"] == FILE]
    places = [
        list(sides)
        for _, sides in groupby([ref for ref in changes if ref["kind"] != FILE], key=lambda ref: ref["signature"])
    ]
    skip, turn = material.skip, material.skip // PAGE
    if not skip:
        draft.say(_describe(draft, material, files))
        for section in material.of("lines"):
            await quote_section(draft, material, section)
    if shown := commits[skip : skip + PAGE]:
        draft.say("\n".join(["Commits:", "", *(format_commit(draft, ref) for ref in shown)]))
    if updates and not skip:
        draft.say(describe_updates(updates))
    if listed := files[skip : skip + PAGE]:
        draft.say("\n".join(["Files:", "", *(_format_file(draft, ref) for ref in listed)]))
    for place in places[turn * PLACES : (turn + 1) * PLACES]:
        _quote_place(draft, place)
    totals = material.metadata["totals"]
    left = (
        _count_left(commits, totals.get("commits", 0) - len(updates), skip + PAGE, "commit"),
        _count_left(files, totals.get("files changed", 0), skip + PAGE, "file"),
        _count_left(places, len(places), (turn + 1) * PLACES, "place"),
    )
    return AnswerSubject(more=_offer_more(draft, material, left))


def _count_left(entries: Sequence[object], total: int, done: int, noun: str) -> tuple[int, int, str]:
    """Return how many entries an answer has left, how many there are that nobody fetched, and what they are."""
    return max(len(entries) - done, 0), max(total, len(entries)) - len(entries), noun


def _offer_more(
    draft: AnswerBuilder, material: AnswerContext, left: Sequence[tuple[int, int, str]]
) -> Continuation | None:
    if more := [format_count(count, noun) for count, _, noun in left if count]:
        draft.say(f'And {join_words(more)} more; say "more" to see them.')
        return {"question": material.name, "skip": material.skip + PAGE}
    if beyond := [format_count(count, noun) for _, count, noun in left if count]:
        draft.say(f"And {join_words(beyond)} more, which are not listed here. Name a folder or a file to see its own.")
    return None


def _describe(draft: AnswerBuilder, material: AnswerContext, files: Sequence[EvidenceRef]) -> str:
    """Say what was compared, how much of it differs, and what keeps that from being all."""
    facts, totals = material.facts, material.metadata["totals"]
    ends = material.of("entry")  # one of them, where both are the same
    older, newer = _format_end(draft, ends[0]), _format_end(draft, ends[-1])
    if facts.get("same"):
        return f"{older} and {newer} are the same commit, {format_code_span(facts['same'][:12])}."
    asked = facts.get("nothing is called", "")
    missing = f"Nothing here is called {format_code_span(asked)}, and nothing that changed is. " if asked else ""
    targets = [format_code_span(target) for target in facts.get("target", "").split("\n")[:3] if target]
    where = f", in {' and '.join(targets)}" if targets else ""
    span = f"From {older} to {newer}{where}"
    if not files and not material.of("commit"):
        said = f"{span}: nothing changed."
    else:
        people = totals.get("people", 0)
        by = f", by {format_count(people, 'person', 'people')}" if people > 1 else ""
        counts = f"+{totals.get('lines added', 0):,} −{totals.get('lines removed', 0):,} lines"
        differ = f"{format_count(totals.get('files changed', 0), 'file')} changed, {counts}"
        said = f"{span}: {format_count(totals.get('commits', 0), 'commit')}{by}; {differ}."
    gaps = (
        f"Not shown: files that are not indexed ({to_one_line(facts['not shown'], longest=120)})."
        if facts.get("not shown")
        else "",
        "Older commits were not fetched: the history here is shallow." if facts.get("shallow") else "",
        "There is too much to compare it all. Name a folder or a file." if facts.get("incomplete") else "",
        "This is what a search for the words of the question finds first." if facts.get("guess") else "",
    )
    return " ".join(filter(None, (missing + said, _describe_parting(facts, totals), *gaps)))


def _format_end(draft: AnswerBuilder, ref: EvidenceRef) -> str:
    day = f" ({ref['signature']})" if ref["signature"] else ""
    return f"{format_code_span(ref['symbol'])} {draft.cite(to_location(ref))}{day}"


def _describe_parting(facts: Mapping[str, str], totals: Mapping[str, int]) -> str:
    """Say where two branches have parted: what the older one has of its own is not in the answer."""
    older, newer = (format_code_span(facts[name]) for name in ("after", "until"))
    if facts.get("common commit"):
        known = " as far as it was fetched" if facts.get("shallow") else ""
        return f"They have no commit in common{known}, so their files are compared as they are."
    if not facts.get("parted at"):
        return ""
    own = format_count(totals.get("only in the older", 0), "commit")
    return (
        f"The branches diverged at {format_code_span(facts['parted at'][:12])}; only changes on {newer} are shown, not "
        f"the {own} on {older} alone."
    )


def _format_file(draft: AnswerBuilder, ref: EvidenceRef) -> str:
    word, _, former = ref["signature"].partition("renamed from ")
    about = ", ".join(filter(None, (ref["doc"], f"renamed from {format_code_span(former)}" if former else word)))
    return f"- {format_code_span(ref['path'])} {draft.cite(to_location(ref))}" + (f": {about}" if about else "")


def _quote_place(draft: AnswerBuilder, sides: Sequence[EvidenceRef]) -> None:
    """Quote a place: its lines before with a minus, those after with a plus, each side cited at its commit."""
    removed = next((ref for ref in sides if ref["kind"] == REMOVED), None)
    added = next((ref for ref in sides if ref["kind"] == ADDED), None)
    ref = added or removed
    if ref is None:
        return
    name = f", in {format_code_span(ref['symbol'])}" if ref["symbol"] else ""
    before = f"before {draft.cite(to_location(removed))}" if removed is not None else ""
    after = f"now {draft.cite(to_location(added))}" if added is not None else ""
    fate = "" if before and after else " (removed)" if before else " (added)"
    draft.say(f"{format_code_span(ref['path'])}{name}, {', '.join(filter(None, (before, after)))}{fate}:")
    old, new = _take_lines(removed), _take_lines(added)
    even = dedent([*old, *new])
    signs = ["- "] * len(old) + ["+ "] * len(new)
    lines = [f"{sign}{line}".rstrip() for sign, line in zip(signs, even, strict=True)]
    draft.say(format_code_block([*lines, *_describe_rest(removed, old), *_describe_rest(added, new)], "diff"))


def _take_lines(ref: EvidenceRef | None) -> list[str]:
    lines = replace_control_characters(ref["doc"]).split("\n")[:_LINES] if ref is not None else []
    return [line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…" for line in lines]


def _describe_rest(ref: EvidenceRef | None, shown: Sequence[str]) -> list[str]:
    if ref is None or (left := ref["end_line"] - ref["start_line"] + 1 - len(shown)) <= 0:
        return []
    sign = "-" if ref["kind"] == REMOVED else "+"
    return [f"{sign} … {format_count(left, 'line')} more"]
