"""Answers about the past: what changed, who wrote and owns it, when and why; each from commits, which it cites."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agent.answers.answer_parts import write_entries
from agent.answers.extractive_builder import AnswerBuilder, AnswerContext, AnswerSubject
from agent.evidence.refs import read_quote
from agent.history.commit_refs import describe_updates, divide_commits
from agent.state import EvidenceRef, to_location
from agent.text.escaping import format_code_block, format_code_span, format_count, format_quote, to_one_line

MAX_COMMITS = 10
MAX_BESIDE_SECTION = 6
MAX_PEOPLE = 7
_MOST_GROUPS = 3  # headings that a list of commits is worth
_SECTION_LINES = 10
_SHALLOW = "Older commits were not fetched: the history here is shallow."
RECENT = "Recent commits: "
_LONGEST_LINE = 160
_NAME = re.compile(r"[^\W\d_][\w '’.-]{0,80}")


async def write_changes(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write how much changed and where, the changelog's own words, and the commits."""
    all_commits = material.of("commit")
    commits, updates = divide_commits(all_commits)
    if not material.skip:
        draft.say(_describe_changes(material, all_commits))
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
        is_grouped="" not in areas and 1 < len(areas) <= _MOST_GROUPS,
        total=material.metadata["totals"].get("commits", 0) - len(updates),
    )
    if updates and not material.skip:
        draft.say(describe_updates(updates))
    return AnswerSubject(more=more)


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
        f"{begins}{counted}{where}{by}{days if newest and not facts.get('after') else ''}.",
        _describe_touched(totals),
        _SHALLOW if facts.get("shallow") else "",
    )))  # fmt: skip


def _describe_range(facts: Mapping[str, str]) -> str:
    """Say between what the commits lie, as the beginning of a sentence."""
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
    counted = f" Counted are the newest {totals['counted']:,}." if totals["counted"] < totals["commits"] else ""
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
    return f"- {sha} {draft.cite(to_location(ref))}, {day}, {_format_person(author)}: {subject}"


def _format_person(name: str) -> str:
    """Write a name as it is; one that could be markup, as code."""
    line = to_one_line(name, longest=80)
    return line if _NAME.fullmatch(line) else format_code_span(line)


async def write_people(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write who owns it by CODEOWNERS, whose lines are left or who made most commits, and who changed it last."""
    people, commits = material.of("entry"), material.of("commit")
    if not material.skip:
        draft.say(" ".join(filter(None, (
            _describe_owners(draft, material),
            _describe_people(draft, material, people),
            *(f"Last changed with {format_commit(draft, ref)[2:]}." for ref in commits),
            _SHALLOW if material.facts.get("shallow") else "",
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
        guess = " This is what a search for the words of the question finds first." if facts.get("guess") else ""
        lines = f"All lines of {target} are by {first}." if count == 1 else ""
        return (lines or f"Most lines of {target} are by {first}, of {count:,} people.") + guess
    commits = f"{format_count(totals.get('commits', 0), 'commit')} to {target}"
    if count == 1:
        return f"All {commits} are by {first}."
    return f"{count:,} people made {commits}, most of them {first}."


def _format_contributor(draft: AnswerBuilder, ref: EvidenceRef) -> str:
    return f"- {_format_person(ref['symbol'])} {draft.cite(to_location(ref))}: {ref['doc']}"


def _describe_target(draft: AnswerBuilder, material: AnswerContext) -> str:
    """Name what the answer is about, with its place."""
    facts = material.facts
    for ref in material.of("definition", "file")[:1]:
        place = f"{format_code_span(ref['path'])} {draft.cite(to_location(ref))}"
        return f"{format_code_span(ref['symbol'])} in {place}" if ref["symbol"] else place
    if target := facts.get("target"):
        return format_code_span(target + "/" * bool(facts.get("folder")))
    return format_code_span(material.deps.code.repository)
