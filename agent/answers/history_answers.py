"""Answers about the past: what changed, between two commits too, who wrote and owns it, when; all cite commits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby

from agent.answers.answer_parts import AnswerBuilder, AnswerContext, AnswerSubject, write_entries
from agent.evidence.refs import read_quote
from agent.history.commit_refs import describe_shallow, describe_updates, divide_commits
from agent.history.comparison import ADDED, FILE, REMOVED
from agent.history.released import UNRELEASED, describe_released
from agent.state import Continuation, EvidenceRef, to_location
from agent.text.escaping import (
    dedent,
    format_code_block,
    format_code_span,
    format_count,
    format_quote,
    join_words,
    replace_control_characters,
    to_one_line,
)

MAX_COMMITS = 10
MAX_BESIDE_SECTION = 6
MAX_PEOPLE = 7
_MAX_GROUPS = 3  # headings that a list of commits is worth
_SECTION_LINES = 10
RECENT = "Recent commits: "
_LONGEST_LINE = 160
_NAME = re.compile(r"[^\W\d_][\w '’.-]{0,80}")


async def write_changes(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write how much changed and where, the changelog's own words, and the commits."""
    all_commits = material.of("commit")
    commits, updates = divide_commits(all_commits)
    if not material.skip:
        draft.say(_describe_changes(material, all_commits))
        say_released(draft, material)
        for section in material.of("lines"):
            await quote_section(draft, material, section)
    most = MAX_BESIDE_SECTION if material.of("lines") else MAX_COMMITS
    areas = {ref["kind"] for ref in commits[material.skip : material.skip + most]}
    more = write_entries(
        draft,
        material,
        commits,
        format_entry=format_commit,
        most=most,
        is_grouped="" not in areas and 1 < len(areas) <= _MAX_GROUPS,
        total=material.metadata["totals"].get("commits", 0) - len(updates),
    )
    if updates and not material.skip:
        draft.say(describe_updates(updates))
    return AnswerSubject(more=more)


def say_released(draft: AnswerBuilder, material: AnswerContext) -> None:
    """Say which release contains the commits, and which environments have them."""
    if lines := describe_released(material.facts):
        draft.say("\n".join(f"- {line}" for line in lines))


def _describe_changes(material: AnswerContext, commits: Sequence[EvidenceRef]) -> str:
    facts, totals = material.facts, material.metadata["totals"]
    if problem := facts.get("problem"):
        return f"{format_quote(problem, longest=400)} The newest commits:"
    if facts.get("untagged"):
        return f"There is no tag {format_code_span(facts['untagged'])} here; the changelog has it."
    count, people = totals.get("commits", len(commits)), totals.get("people", 0)
    by = f", by {format_count(people, 'person', 'people')}" if people > 1 else ""
    where = f" to {format_code_span(facts['target'])}" if facts.get("target") else ""
    begins = _describe_range(facts)
    newest, oldest = facts.get("newest", ""), facts.get("oldest", "")
    days = f", on {newest}" if newest == oldest else f", from {oldest} to {newest}"
    counted = f"{count:,}" if begins == RECENT else format_count(count, "commit")
    return " ".join(filter(None, (
        _describe_fate(facts),
        f"{begins}{counted}{where}{by}{days if newest and not facts.get('after') else ''}.",
        _describe_touched(totals),
        describe_shallow(facts.get("shallow", "")),
    )))  # fmt: skip


def _describe_fate(facts: Mapping[str, str]) -> str:
    """Say what happened to a file that the commit does not have under the given name."""
    if facts.get("former"):
        return f"{format_code_span(facts['former'])} is now {format_code_span(facts['target'])}."
    return f"There is no {format_code_span(facts['target'])} any more." if facts.get("gone") else ""


def _describe_range(facts: Mapping[str, str]) -> str:
    """Name the ends of a range of commits, as the beginning of a sentence."""
    after, until = _format_tag(facts, "after"), _format_tag(facts, "until")
    if after and until:
        return f"From {after} to {until}: "
    if after or until:
        return f"Since {after}: " if after else f"Up to {until}: "
    if facts.get("said"):
        said = to_one_line(facts["said"], longest=80)
        return f"{format_code_span(said)}: " if not _NAME.fullmatch(said) else f"{said[0].upper()}{said[1:]}: "
    return RECENT if facts.get("lately") else ""


def _format_tag(facts: Mapping[str, str], name: str) -> str:
    day = facts.get(f"{name} day", "")
    return f"{format_code_span(facts[name])}" + (f" ({day})" if day else "") if facts.get(name) else ""


def _describe_touched(totals: Mapping[str, int]) -> str:
    """Name the folders and files that the commits touched most."""
    areas = [f"{format_code_span(name[5:])} ({count:,})" for name, count in totals.items() if name.startswith("area ")]
    files = [f"{format_code_span(name[5:])} ({count:,})" for name, count in totals.items() if name.startswith("file ")]
    counted = f" Counted: the newest {totals['counted']:,}." if totals["counted"] < totals["commits"] else ""
    said = [f"Most are in {', '.join(areas)}." if areas else "", f"Touched most: {', '.join(files)}." if files else ""]
    return " ".join(filter(None, said)) + (counted if areas or files else "")


async def quote_section(draft: AnswerBuilder, material: AnswerContext, section: EvidenceRef) -> None:
    """Quote the first lines of a changelog's section."""
    source = await read_quote(material.deps, to_location(section))
    lines = [to_one_line(line, longest=_LONGEST_LINE) for line in source.lines if line.strip()]
    lines = [line for line in lines if any(map(str.isalnum, line))]
    left = len(lines) - _SECTION_LINES
    more = f" ({left} more lines there)" if left > 0 else ""
    version = format_code_span(material.facts.get("section", ""))
    draft.say(f"{format_code_span(section['path'])} {draft.cite(to_location(section))} on {version}{more}:")
    draft.say(format_code_block(lines[:_SECTION_LINES], "text"))


def format_commit(draft: AnswerBuilder, ref: EvidenceRef) -> str:
    """Write a commit as a list item: its name, its mark, when, by whom, and its subject."""
    day, _, author = ref["signature"].partition(", ")
    sha = format_code_span(ref.get("commit", "")[:8])
    subject = format_quote(ref["symbol"].rstrip(". "), longest=140) or "no message"
    release = ref.get("release", "")
    said = f" ({release if release == UNRELEASED else f'since {format_code_span(release)}'})" if release else ""
    return f"- {sha} {draft.cite(to_location(ref))}, {day}, {_format_person(author)}: {subject}{said}"


def _format_person(name: str) -> str:
    """Write a name, as code if it could be markup."""
    line = to_one_line(name, longest=80)
    return line if _NAME.fullmatch(line) else format_code_span(line)


async def write_people(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write the owner from CODEOWNERS, the main authors, and the last change."""
    people, commits = material.of("entry"), material.of("commit")
    if not material.skip:
        draft.say(" ".join(filter(None, (
            _describe_fate(material.facts),
            _describe_owners(draft, material),
            _describe_people(draft, material, people),
            *(f"Last changed with {format_commit(draft, ref)[2:]}." for ref in commits),
            describe_shallow(material.facts.get("shallow", "")),
        ))))  # fmt: skip
    more = write_entries(draft, material, people, format_entry=_format_contributor, most=MAX_PEOPLE, is_grouped=False)
    about = material.of("definition")  # "it" stays what people and commits were asked about
    return AnswerSubject(symbol=about[0]["symbol"] if about else "", kind=about[0]["kind"] if about else "", more=more)


def _describe_owners(draft: AnswerBuilder, material: AnswerContext) -> str:
    facts = material.facts
    owners = [format_code_span(owner) for owner in facts.get("owners", "").split("\n") if owner]
    if not owners or not (rules := material.of("mention")):
        return ""
    file = f"{format_code_span(rules[0]['path'])} {draft.cite(to_location(rules[0]))}"
    return f"{file} gives {format_code_span(facts['pattern'])} to {', '.join(owners)}."


def _describe_people(draft: AnswerBuilder, material: AnswerContext, people: Sequence[EvidenceRef]) -> str:
    facts, totals = material.facts, material.metadata["totals"]
    target = _describe_target(draft, material)
    if problem := facts.get("problem"):
        return f"{target}: {format_quote(problem, longest=400)}"
    if not people:
        return ""
    first, count = _format_person(people[0]["symbol"]), totals.get("people", len(people))
    if totals.get("lines"):
        guess = " These are the first results of a search for the words of the question." if facts.get("guess") else ""
        lines = f"All lines of {target} are by {first}." if count == 1 else ""
        return (lines or f"Most lines of {target} are by {first}, of {count:,} people.") + guess
    commits = f"{format_count(totals.get('commits', 0), 'commit')} to {target}"
    if count == 1:
        return f"All {commits} are by {first}."
    return f"{count:,} people made {commits}, most of them {first}."


def _format_contributor(draft: AnswerBuilder, ref: EvidenceRef) -> str:
    return f"- {_format_person(ref['symbol'])} {draft.cite(to_location(ref))}: {ref['doc']}"


def _describe_target(draft: AnswerBuilder, material: AnswerContext) -> str:
    """Name the subject of the answer, with its place."""
    facts = material.facts
    for ref in material.of("definition", "file")[:1]:
        place = f"{format_code_span(ref['path'])} {draft.cite(to_location(ref))}"
        return f"{format_code_span(ref['symbol'])} in {place}" if ref["symbol"] else place
    if target := facts.get("target"):
        return format_code_span(target + "/" * bool(facts.get("folder")))
    return format_code_span(material.deps.code.repository)


PAGE = 6  # commits, and files, of one answer
PLACES = 4
_LINES = 14  # of each side of a place
_MAX_CODE = 160


async def write_comparison(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Describe a comparison: its ends, and a page of commits, of files and of places."""
    commits, updates = divide_commits(material.of("commit"))
    changes = material.of("change")
    files = [ref for ref in changes if ref["kind"] == FILE]
    places = [
        list(sides)
        for _, sides in groupby([ref for ref in changes if ref["kind"] != FILE], key=lambda ref: ref["signature"])
    ]
    skip, turn = material.skip, material.skip // PAGE
    if not skip:
        draft.say(_describe_comparison(draft, material, files))
        say_released(draft, material)
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
    """Return the number of remaining entries, the number that was not fetched, and their noun."""
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


def _describe_comparison(draft: AnswerBuilder, material: AnswerContext, files: Sequence[EvidenceRef]) -> str:
    """Describe a comparison: its ends, its size, and its gaps."""
    facts, totals = material.facts, material.metadata["totals"]
    ends = material.of("entry")  # one of them, where both are the same
    older, newer = _format_end(draft, ends[0]), _format_end(draft, ends[-1])
    if facts.get("same"):
        return f"{older} and {newer} are the same commit, {format_code_span(facts['same'][:12])}."
    asked = facts.get("nothing is called", "")
    missing = f"Nothing here is named {format_code_span(asked)}, and no changed code is. " if asked else ""
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
        describe_shallow(facts.get("shallow", "")),
        "There is too much to compare it all. Name a folder or a file." if facts.get("incomplete") else "",
        "These are the first results of a search for the words of the question." if facts.get("guess") else "",
    )
    return " ".join(filter(None, (missing + said, _describe_parting(facts, totals), *gaps)))


def _format_end(draft: AnswerBuilder, ref: EvidenceRef) -> str:
    day = f" ({ref['signature']})" if ref["signature"] else ""
    return f"{format_code_span(ref['symbol'])} {draft.cite(to_location(ref))}{day}"


def _describe_parting(facts: Mapping[str, str], totals: Mapping[str, int]) -> str:
    """Say where two branches diverged; the answer omits changes on the older one."""
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
    return [line if len(line) <= _MAX_CODE else f"{line[: _MAX_CODE - 1]}…" for line in lines]


def _describe_rest(ref: EvidenceRef | None, shown: Sequence[str]) -> list[str]:
    if ref is None or (left := ref["end_line"] - ref["start_line"] + 1 - len(shown)) <= 0:
        return []
    sign = "-" if ref["kind"] == REMOVED else "+"
    return [f"{sign} … {format_count(left, 'line')} more"]
