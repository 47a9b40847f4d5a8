"""Shows which release first contains commits, and which commits run in the environments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from agent.evidence.requests import Retrieved
from agent.history.commit_refs import make_commit_ref
from agent.history.history_target import find_target
from agent.history.people import describe_target
from agent.ports import CodeSearch
from agent.questions.terms import find_content_terms
from agent.state import EvidenceRef
from agent.text.escaping import format_code_span, format_count, format_quote
from indexer.errors import UnknownRevision
from indexer.types import Deployment, LogQuery, Releases

UNRELEASED = "not released yet"
MAX_ASKED = 100  # commits
_MAX_FOUND = 10
_MAX_NAMED = 3
NOWHERE = "No environments of this repository are configured. Name them under environments in citebot.toml."


async def fetch_shipped(code: CodeSearch, asked: Mapping[str, str]) -> Retrieved:
    """Fetch the commits of a question about releases and environments, newest first."""
    if asked.get("running"):
        return await _fetch_running(code)
    query, facts = await _find_query(code, asked)
    try:
        log = await code.past.log(query)
    except UnknownRevision as error:
        return await _show_newest(code, str(error))
    refs = [make_commit_ref(one) for one in log.revisions]
    totals = {"commits": (not asked.get("commit") and log.total) or len(refs), "counted": len(refs)}
    return await add_releases(code, Retrieved(refs=refs, totals=totals, facts=facts), asks_where=True)


async def _find_query(code: CodeSearch, asked: Mapping[str, str]) -> tuple[LogQuery, Mapping[str, str]]:
    if commit := asked.get("commit"):
        return LogQuery(until=commit, limit=1), {"said": f"commit {commit}"}
    target = await find_target(code, asked["name"]) if asked.get("name") else None
    if target is not None and not target.is_guess:
        query = LogQuery(path=target.path, lines=target.lines, text=target.text, limit=_MAX_FOUND)
        return query, describe_target(target)
    what = asked.get("change") or asked["name"]
    words = tuple(sorted(find_content_terms(what)))
    return LogQuery(words=words, limit=_MAX_FOUND), {"said": f"commits about {what}"}


async def _fetch_running(code: CodeSearch) -> Retrieved:
    """Fetch the commits that run in the environments."""
    known = await code.past.releases(())
    refs: list[EvidenceRef] = []
    for sha in dict.fromkeys(one.sha for one in known.deployments if one.sha):
        log = await code.past.log(LogQuery(until=sha, limit=1))
        refs += [make_commit_ref(one) for one in log.revisions]
    if not refs:
        problems = (f"The commit in {one.environment} is unknown: {one.problem}" for one in known.deployments)
        return await _show_newest(code, " ".join(problems) or NOWHERE)
    facts = dict(_describe_deployments(known, ()))
    return Retrieved(refs=refs, totals={"commits": len(refs), "counted": len(refs)}, facts=facts)


async def _show_newest(code: CodeSearch, problem: str) -> Retrieved:
    """Show the newest commit because a problem prevents finding others."""
    newest = await code.past.log(LogQuery(limit=1))
    return Retrieved(refs=[make_commit_ref(one) for one in newest.revisions], facts={"problem": problem})


async def add_releases(code: CodeSearch, found: Retrieved, *, asks_where: bool = False) -> Retrieved:
    """Add the first release and the environments to each commit.

    If all are in one release, it is named once.
    """
    shas = [ref["commit"] for ref in found.refs if ref["role"] == "commit" and ref.get("commit")][:MAX_ASKED]
    if not shas and not asks_where:
        return found
    known = await code.past.releases(shas)
    facts = {**found.facts, **dict(_describe_deployments(known, shas))}
    if asks_where and not known.deployments:
        facts["running nowhere"] = NOWHERE
    if waiting := Counter(known.branches.values()):
        named = ", ".join(
            f"{format_code_span(name)} ({format_count(count, 'commit')})" for name, count in waiting.items()
        )
        facts["on branches"] = f"On a release branch, not yet tagged: {named}."
    if known.since is None or not shas:
        return replace(found, facts=facts)
    since = {sha: known.since.get(sha, UNRELEASED) for sha in shas}
    if len(set(since.values())) == 1:
        return replace(found, facts={**facts, "released": since[shas[0]]})
    refs: list[EvidenceRef] = [
        {**ref, "release": since[ref["commit"]]} if ref["role"] == "commit" and ref.get("commit") in since else ref
        for ref in found.refs
    ]
    return replace(found, refs=refs, facts=facts)


def describe_released(facts: Mapping[str, str]) -> list[str]:
    """Return the sentences on releases and environments."""
    lines = []
    if released := facts.get("released"):
        is_out = released != UNRELEASED
        lines.append(f"Released since {format_code_span(released)}." if is_out else "Not in any release yet.")
    lines += [said for name, said in facts.items() if name == "on branches" or name.startswith("runs ")]
    return [*lines, *filter(None, (facts.get("running nowhere"),))]


def _describe_deployments(known: Releases, shas: Sequence[str]) -> Iterable[tuple[str, str]]:
    for one in known.deployments:
        yield f"runs {one.environment}", _describe_deployment(one, shas)


def _describe_deployment(one: Deployment, shas: Sequence[str]) -> str:
    where = format_code_span(one.environment)
    if one.problem:
        return f"The commit that {where} runs is not known: {format_quote(one.problem, longest=400)}"
    release = f" (since {format_code_span(one.release)})" if one.release else ""
    runs = f"{where} runs {format_code_span(one.sha[:8])}{release}, by {format_code_span(one.written)}"
    if not shas:
        behind = f"is {format_count(one.behind, 'commit')} behind" if one.behind else "is up to date"
        return f"{runs}, and {behind if one.behind is not None else 'its lag is unknown'}."
    if one.lacking is None:
        return f"{runs}; git cannot tell whether it has these commits."
    lacking = [sha for sha in shas if sha in one.lacking]
    if not lacking:
        return f"{runs}, and has {'this commit' if len(shas) == 1 else 'all of these commits'}."
    if len(lacking) == len(shas):
        return f"{runs}, and {'lacks this commit' if len(shas) == 1 else 'has none of these commits'}."
    named = ", ".join(format_code_span(sha[:8]) for sha in lacking[:_MAX_NAMED])
    more = f" and {len(lacking) - _MAX_NAMED} more" if len(lacking) > _MAX_NAMED else ""
    return f"{runs}, and lacks {len(lacking)} of these {len(shas)} commits: {named}{more}."
