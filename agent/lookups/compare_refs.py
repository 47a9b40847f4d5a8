"""The difference between two commits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from agent.evidence.refs import make_lines_ref
from agent.history.comparison import (
    ADDED,
    FILE,
    REMOVED,
    compare_part,
    count_comparison,
    describe_comparison,
    describe_history,
    make_comparison_refs,
    read_whole_diff,
)
from agent.lookups.lookup import Arguments, CodeLookup, Look, Plain
from agent.lookups.read_file import name_similar
from agent.lookups.repository_log import PlainPath
from agent.lookups.results import ChangedFile, ChangedLines, ComparisonResult, number_lines
from agent.lookups.tool import HISTORY
from agent.repositories.joined_code import CodeHome, list_homes
from agent.repositories.labels import label_ref
from agent.text.escaping import format_count
from indexer.types import Location

MAX_FILES = 40
_SAID = {REMOVED: "removed", ADDED: "added"}


class CompareArguments(Arguments):
    """Two commits, and a part of the code."""

    from_ref: Plain = Field(min_length=1, description="The older tag, branch or commit; #12 for a pull request.")
    to_ref: Plain = Field(default="", description="The newer one; empty for the commit that is read here.")
    path: PlainPath = Field(default="", description="A file, a folder, or the name of a definition. Empty for all.")


class CompareRefs(CodeLookup[CompareArguments, ComparisonResult]):
    """Shows the difference between two commits."""

    name = "compare_refs"
    title = "Compare two commits"
    description = (
        "Compare two tags, branches or commits: the files that differ, how many lines, and the most telling lines, or "
        "with a `path` to one file the whole diff; removed lines at the older commit and added ones at the newer. "
        "repository_log has the commits between them."
    )
    arguments = CompareArguments
    result = ComparisonResult
    label = "Comparing"
    argument_shown = "from_ref"
    cost = HISTORY
    is_repeatable = False
    room = 18_000

    def describe_target(self, args: Mapping[str, Any]) -> str:
        """Name the compared commits."""
        ends = " and ".join(str(args[name]) for name in ("from_ref", "to_ref") if args.get(name))
        return f"{ends} in {args['path']}" if args.get("path") else ends

    async def find(self, args: CompareArguments, look: Look) -> ComparisonResult:
        """List the files, then show lines as room allows."""
        found: dict[str, Any] = {}
        for home in list_homes(look.code, args.path.removeprefix("./").strip("/")):
            if home.label:
                look.say(f"{home.repository}:")
            found = await _compare_home(look, home, args)
        return ComparisonResult(**look.head, **found)


def _summarize(facts: Mapping[str, str], counts: Mapping[str, int]) -> str:
    commits = f"{format_count(counts['only in the newer'], 'commit')} only in {facts['until']}."
    return " ".join([*describe_history(facts, counts), commits])


async def _compare_home(look: Look, home: CodeHome, args: CompareArguments) -> dict[str, Any]:
    part = await compare_part(home.code, args.from_ref, args.to_ref, home.path)
    facts = describe_comparison(part, home.code.commit)
    counts = count_comparison(part.comparison)
    if facts.get("same"):
        look.note(f"{facts['after']} and {facts['until']} are the same commit.")
        return {}
    known = {name: said for name, said in facts.items() if said and not name.startswith("changed ")}
    newer = make_lines_ref(Location(path="", start_line=0, end_line=0, commit=part.comparison.newer.sha), "commit")
    look.cite(label_ref(newer, home.repository, home.label) if home.label else newer, _summarize(known, counts))
    if part.asked and (near := await name_similar(home.code, part.asked)):
        look.say(near)
    refs = await make_comparison_refs(home.code, await read_whole_diff(home.code, part) or part)
    files = [
        ChangedFile(path=ref["path"], change=f"{ref['doc']} {ref['signature']}".strip())
        for ref in [ref for ref in refs if ref["kind"] == FILE][:MAX_FILES]
    ]
    for one in files:
        look.say(f"{one.path} {one.change}".strip())
    if counts["files changed"] > MAX_FILES:
        look.note("More files differ; ask with a path.")
    sides = [ref for ref in refs if ref["kind"] in _SAID]
    for ref in sides:
        named = label_ref(ref, home.repository, home.label) if home.label else ref
        within = f" in {ref['symbol']}" if ref["symbol"] else ""
        look.show(named, ref["doc"], about=f"{_SAID[ref['kind']]}{within}")
        cut = ref["end_line"] - ref["start_line"] - ref["doc"].count("\n")
        if cut:
            look.say(f"{format_count(cut, 'line')} more: compare with this file as the path, or read_file.")
    look.head["total"] = counts["files changed"]
    lines = [
        ChangedLines(
            side="removed" if ref["kind"] == REMOVED else "added",
            path=ref["path"],
            commit=ref.get("commit", home.code.commit.sha),
            first_line=ref["start_line"],
            last_line=ref["end_line"],
            symbol=ref["symbol"],
            code=number_lines(look.mask(ref["doc"]), ref["start_line"]),
        )
        for ref in sides
    ]
    masked = {name: look.mask(said) for name, said in known.items()}
    return {"facts": masked, "counts": counts, "files": tuple(files), "lines": tuple(lines)}
