"""Says in sentences what was found out and counted about the past, beside the commits and lines that it is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agent.history.commit_refs import describe_shallow
from agent.history.released import describe_released
from agent.text.escaping import format_count

_MOST_FILES = 12


def describe_history(facts: Mapping[str, str], totals: Mapping[str, int]) -> list[str]:
    """Return the sentences; none where nothing is known of the past."""
    return [
        *_describe_scope(facts), *_describe_counts(facts, totals), *describe_released(facts), *_describe_gaps(facts)
    ]  # fmt: skip


def _describe_scope(facts: Mapping[str, str]) -> Iterator[str]:
    if facts.get("problem"):
        yield facts["problem"]
    if facts.get("untagged"):
        yield f"There is no tag {facts['untagged']}; the changelog has a section on it."
    if facts.get("nothing is called"):
        yield f"Nothing in the code or among the changes is called {facts['nothing is called']}."
    targets = " and ".join(facts.get("target", "").split("\n")[:3])
    if targets:
        guess = ", found by a search for the words of the question" if facts.get("guess") else ""
        yield f"The history is that of {targets}{'/' * bool(facts.get('folder'))}{guess}."
    if facts.get("former"):
        yield f"{facts['former']} is now called {targets}."
    if facts.get("gone"):
        yield f"There is no {targets} any more; the newest of its commits removed or renamed it."
    yield from _describe_ends(facts)
    if facts.get("owners"):
        yield f"CODEOWNERS gives {facts['pattern']} to {', '.join(facts['owners'].split())}."


def _describe_ends(facts: Mapping[str, str]) -> Iterator[str]:
    ends = [
        f"{word} {facts[name]}" + (f" of {facts[f'{name} day']}" if facts.get(f"{name} day") else "")
        for name, word in (("after", "from"), ("until", "to"))
        if facts.get(name)
    ]
    if facts.get("same"):
        yield f"{facts['after']} and {facts['until']} are the same commit, {facts['same'][:12]}."
    elif ends:
        yield f"It goes {' '.join(ends)}."
    elif facts.get("said"):
        yield f"What was asked for: {facts['said']}."


def _describe_counts(facts: Mapping[str, str], totals: Mapping[str, int]) -> Iterator[str]:
    if totals.get("commits"):
        by = f", by {format_count(totals['people'], 'person', 'people')}" if totals.get("people") else ""
        days = f", from {facts['oldest']} to {facts['newest']}" if facts.get("newest") else ""
        yield f"{format_count(totals['commits'], 'commit')}{by}{days}."
    touched = [
        f"{name.partition(' ')[2]} ({count:,})" for name, count in totals.items() if name.startswith(("area ", "file "))
    ]
    if touched:
        newest = f" of the newest {totals['counted']:,}" if totals.get("counted", 0) < totals.get("commits", 0) else ""
        yield f"Most commits{newest} touch {', '.join(touched)}."
    if "files changed" in totals and not facts.get("same"):
        lines = f"+{totals.get('lines added', 0):,} −{totals.get('lines removed', 0):,} lines"
        yield f"{format_count(totals['files changed'], 'file')} changed, {lines}."
    changed = [(name[8:], said) for name, said in facts.items() if name.startswith("changed ")]
    yield from (f"{path}: {said}." for path, said in changed[:_MOST_FILES])
    if facts.get("common commit"):
        yield "The two have no commit in common, so their files are compared as they are."
    if facts.get("parted at"):
        own = format_count(totals.get("only in the older", 0), "commit")
        yield (
            f"The branches diverged at {facts['parted at'][:12]}; only changes on {facts['until']} are shown, not the "
            f"{own} on {facts['after']} alone."
        )


def _describe_gaps(facts: Mapping[str, str]) -> Iterator[str]:
    if facts.get("not shown"):
        yield f"Not shown, because they are not indexed: {facts['not shown']}."
    if facts.get("shallow"):
        yield describe_shallow(facts["shallow"])
    if facts.get("incomplete"):
        yield "There is too much to compare it all."
