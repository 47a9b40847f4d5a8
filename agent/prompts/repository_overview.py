"""The overview of a repository as models read it first: what it is, how large, in what languages, and its folders."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from agent.guard.evidence_check import mark_text
from agent.ports import CodeSearch, Deps
from agent.repositories.joined_code import JoinedCode
from agent.state import AgentState
from agent.text.escaping import to_one_line
from indexer.types import Commit, RepositoryOverview

MAX_CHARACTERS = 1_800  # 600 tokens where paths make for three characters each
MAX_JOINED_CHARACTERS = 4_500  # of several repositories together
JOINED = "Several repositories are asked about. A path begins with the folder of its repository:"
_LONGEST_SENTENCE = 300
_LONGEST_NAME = 100
_MOST_INNER = 10  # folders in a folder that are named
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)")


async def load_overview(state: AgentState, deps: Deps) -> str:
    """Return the overview that comes first in the prompts of the turn: what the turn has, or else a new one."""
    return state.get("codebase_tree") or await format_overview(deps)


async def format_overview(deps: Deps) -> str:
    """Write the overview of what is asked about, secrets masked, orders to a model marked; several share a room."""
    if not isinstance(deps.code, JoinedCode):
        return await _describe_repository(deps, deps.code, MAX_CHARACTERS)
    homes = deps.code.list_homes("")
    room = MAX_JOINED_CHARACTERS // len(homes)
    parts = [
        f"Below {home.label}/: {await _describe_repository(deps, home.code, min(room, MAX_CHARACTERS))}"
        for home in homes
    ]
    missing = [f"{to_one_line(name, longest=_LONGEST_NAME)} cannot be read now." for name in deps.code.missing]
    return "\n\n".join([JOINED, *parts, *missing])


async def _describe_repository(deps: Deps, code: CodeSearch, room: int) -> str:
    lines = _list_facts(code.repository, code.commit, await code.overview())
    kept: list[str] = []
    for line in (deps.redact(line) for line in lines):
        room -= len(line) + 1
        if room < 0:
            kept.append("(more folders are left out)")
            break
        kept.append(line)
    return mark_text("\n".join(kept))


def _list_facts(name: str, commit: Commit, facts: RepositoryOverview) -> list[str]:
    day = datetime.fromtimestamp(commit.committed_at, UTC).date().isoformat()
    languages = ", ".join(f"{language} {count:,}" for language, count in facts.languages)
    top = sorted((path for path, _ in facts.folders if "/" not in path), key=dict(facts.folders).__getitem__)[::-1]
    first = [
        f"{to_one_line(name, longest=_LONGEST_NAME)} at commit {commit.sha[:12]} of {day}",
        f"{facts.files:,} files, {facts.lines:,} lines: {languages}",
        f"README: {_take_sentence(' '.join(one.text for one in facts.introduction))}" if facts.introduction else "",
        f"It starts from: {', '.join(to_one_line(path, longest=_LONGEST_NAME) for path in facts.starts)}"
        if facts.starts
        else "",
        "Folders, with the number of files below them:" if top else "",
    ]
    return [*filter(None, first), *(_format_folder(path, facts) for path in top)]


def _format_folder(path: str, facts: RepositoryOverview) -> str:
    """Write a folder at the top on a line with those in it, the largest first."""
    below = sorted(((inner, n) for inner, n in facts.folders if inner.startswith(f"{path}/")), key=lambda one: -one[1])
    inside = ", ".join(f"{to_one_line(inner[len(path) + 1 :], longest=40)}/ {n}" for inner, n in below[:_MOST_INNER])
    more = f" and {len(below) - _MOST_INNER} more" if len(below) > _MOST_INNER else ""
    own = f"{to_one_line(path, longest=_LONGEST_NAME)}/ {dict(facts.folders)[path]}"
    return f"{own} ({inside}{more})" if inside else own


def _take_sentence(text: str) -> str:
    line = to_one_line(text[: 4 * _LONGEST_SENTENCE], longest=_LONGEST_SENTENCE)
    end = _SENTENCE_END.search(line)
    return line[: end.end()] if end else line
