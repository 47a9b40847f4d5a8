"""Fetches who wrote, changes and owns a file, a folder, a definition or everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from agent.evidence.refs import make_lines_ref
from agent.evidence.requests import Retrieved
from agent.history.commit_refs import format_day, make_commit_ref, make_person_ref, name_horizon
from agent.history.history_target import HistoryTarget, find_target
from agent.ports import CodeSearch
from agent.state import EvidenceRef, RetrievalRequest, Role
from indexer.types import Contributor, Contributors, LineOrigin, LogQuery

MAX_PEOPLE = 60


async def fetch_people(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """Fetch the owners by CODEOWNERS, the authors by lines or commits, and the newest commit."""
    parts = request.get("parts", {})
    target = await find_target(code, parts.get("target", ""))
    if target is None or target.text:
        return Retrieved(refs=())
    refs = [make_target_ref(target)] if target.path and not (target.is_folder or target.is_gone) else []
    owners = await code.past.owners(f"{target.path}/" if target.is_folder else target.path) if target.path else None
    facts = describe_target(target)
    if owners is not None:
        refs.append(make_lines_ref(owners.location, "mention"))
        facts |= {"owners": "\n".join(owners.owners), "pattern": owners.pattern}
    people, totals = await (_count_lines(code, target) if target.lines else _count_all(code, target.path))
    log = await code.past.log(LogQuery(path=target.path, lines=target.lines, limit=1))
    newest = log.revisions
    if log.horizon is not None:
        facts["shallow"] = name_horizon(log.horizon)
    if not people and not newest and owners is None:
        facts["problem"] = "Its history is not known here."
    commits = [make_commit_ref(one) for one in newest]
    return Retrieved(refs=[*refs, *people[:MAX_PEOPLE], *commits], totals=totals, facts=facts)


def make_target_ref(target: HistoryTarget) -> EvidenceRef:
    """Refer to the definition or the file that a question about the past is about."""
    role: Role = "definition" if target.symbol else "file"
    return make_lines_ref(target.location, role, symbol=target.symbol, kind=target.kind)


def describe_target(target: HistoryTarget) -> dict[str, str]:
    """Describe the interpreted subject of a question."""
    facts = {"target": target.symbol or target.path or target.text, "former": target.former}
    flags = {"folder": target.is_folder, "guess": target.is_guess, "gone": target.is_gone}
    return {name: said for name, said in facts.items() if said} | {
        name: "yes" for name, is_so in flags.items() if is_so
    }


async def _count_all(code: CodeSearch, path: str) -> tuple[list[EvidenceRef], Mapping[str, int]]:
    found = await code.past.people(path)
    refs = [make_person_ref(one.name, one.newest, _describe_person(one, found)) for one in found.people]
    return refs, {"people": len(found.people), "commits": found.commits, "lines": found.lines}


def _describe_person(person: Contributor, found: Contributors) -> str:
    commits = f"{person.commits:,} commit{'s' if person.commits != 1 else ''}"
    lines = f"{person.lines:,} of {found.lines:,} lines, " if found.lines else ""
    share = "" if found.lines else f" ({_format_share(person.commits, found.commits)})"
    first, last = format_day(person.first_at)[:7], format_day(person.last_at)[:7]
    return f"{lines}{commits}{share}, {first if first == last else f'{first} to {last}'}"


def _format_share(part: int, whole: int) -> str:
    share = 100 * part / whole if whole else 0.0
    return f"{share:.0f} %" if share >= 1 else "under 1 %"


async def _count_lines(code: CodeSearch, target: HistoryTarget) -> tuple[list[EvidenceRef], Mapping[str, int]]:
    """Count the authors of a definition's lines."""
    origins = await code.past.origins(target.location)
    total = sum(one.lines for one in origins)
    by_author: dict[str, list[LineOrigin]] = {}
    for origin in origins:
        by_author.setdefault(origin.revision.author, []).append(origin)
    lines = Counter({author: sum(one.lines for one in own) for author, own in by_author.items()})
    refs: list[EvidenceRef] = []
    for author, count in lines.most_common():
        newest = max((one.revision for one in by_author[author]), key=lambda one: one.committed_at)
        commits = len(by_author[author])
        about = f"{count:,} of {total:,} lines, from {commits} commit{'s' if commits != 1 else ''}"
        refs.append(make_person_ref(author, newest.sha, f"{about}, newest {format_day(newest.committed_at)}"))
    return refs, {"people": len(lines), "lines": total}
