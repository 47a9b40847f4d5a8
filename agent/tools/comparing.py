"""The tool that compares two tags, branches or commits: files with their counts, and the lines on both sides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field

from agent.history.compared_part import compare_part
from agent.history.comparison_refs import (
    ADDED,
    FILE,
    REMOVED,
    count_comparison,
    describe_comparison,
    make_comparison_refs,
)
from agent.ports import Deps
from agent.repositories.joined_code import CodeHome, list_homes
from agent.repositories.labels import label_ref
from agent.tools.repository_log import Plain, check_plain
from agent.tools.tool import HISTORY, Tool, ToolEvidence, ToolReport

MAX_FILES = 40
_SAID = {REMOVED: "removed", ADDED: "added"}


class CompareArguments(BaseModel):
    """Which two, and where."""

    from_ref: Plain = Field(min_length=1, description="The older tag, branch or commit; #12 for a pull request.")
    to_ref: Plain = Field(default="", description="The newer one; empty for the commit that is read here.")
    path: Annotated[str, Field(max_length=1000), AfterValidator(check_plain)] = Field(
        default="", description="A file, a folder, or the name of a definition. Empty for all."
    )


class CompareRefs(Tool[CompareArguments]):
    """Shows what differs between two commits."""

    name = "compare_refs"
    description = (
        "Compare two tags, branches or commits: the files that differ, how many lines, and the most telling lines, "
        "removed ones at the older commit and added ones at the newer. repository_log has the commits between them."
    )
    arguments = CompareArguments
    label = "Comparing"
    argument_shown = "from_ref"
    cost = HISTORY
    only_reads = True
    is_repeatable = False

    def describe_target(self, args: Mapping[str, Any]) -> str:
        """Name what is compared."""
        ends = " and ".join(str(args[name]) for name in ("from_ref", "to_ref") if args.get(name))
        return f"{ends} in {args['path']}" if args.get("path") else ends

    async def run(self, args: CompareArguments, deps: Deps) -> ToolEvidence:
        """List the files, then show lines while there is room."""
        report = ToolReport(deps)
        for home in list_homes(deps.code, args.path.removeprefix("./").strip("/")):
            if home.label:
                report.say(f"{home.repository}:")
            await _compare_home(report, home, args)
        return report.evidence()


async def _compare_home(report: ToolReport, home: CodeHome, args: CompareArguments) -> None:
    part = await compare_part(home.code, args.from_ref, args.to_ref, home.path)
    facts = describe_comparison(part, home.code.commit)
    counts = count_comparison(part.comparison)
    if facts.get("same"):
        report.say(f"{facts['after']} and {facts['until']} are the same commit.")
        return
    known = {name: said for name, said in facts.items() if said and not name.startswith("changed ")}
    report.say("; ".join(f"{name}: {said}" for name, said in {**known, **counts}.items()))
    refs = await make_comparison_refs(home.code, part)
    for ref in [ref for ref in refs if ref["kind"] == FILE][:MAX_FILES]:
        report.say(f"{ref['path']} {ref['doc']} {ref['signature']}".strip())
    if counts["files changed"] > MAX_FILES:
        report.say("More files differ; ask with a path.")
    for ref in refs:
        if ref["kind"] in _SAID:
            named = label_ref(ref, home.repository, home.label) if home.label else ref
            within = f" in {ref['symbol']}" if ref["symbol"] else ""
            report.show(named, ref["doc"], about=f"{_SAID[ref['kind']]}{within}")
