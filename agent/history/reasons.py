"""Fetches when and why something was added, changed or removed: the commits that did it, with their messages."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent.evidence.retrieved import Retrieved
from agent.history.commit_refs import make_commit_ref
from agent.history.history_target import HistoryTarget, find_target
from agent.history.people import describe_target, make_target_ref
from agent.ports import CodeSearch
from agent.questions.mentions import is_code_like
from agent.state import RetrievalRequest
from indexer.types import CommitLog, LogQuery, Revision

MAX_COMMITS = 60
MAX_TEXT_COMMITS = 1_000  # that brought or took away a text; the oldest of them is asked for
_SHORTEST_NAME = 8  # letters of a name that is looked for in all history, where a shorter one is everywhere
# What verbs begin with that ask for the first commit, and for the last one of what is gone.
_ADDING = (
    "add intro creat implement writ appear exist invent first begin start come came old long hinzu einge erstell"
    " angelegt gibt ajout créé añad agreg cre 追加 導入 添加 加入 引入 创建 作"
).split()
_REMOVING = "remov delet drop entfern gelösch supprim retir elimin quit 削除 删除 移除".split()
_CHANGING = (
    "chang",
    "modif",
    "updat",
    "touch",
    "edit",
    "änder",
    "geänder",
    "cambi",
    "変更",
    "修改",
    "更改",
    "改",
    "the ",
)
_STEM = 6  # letters of a verb that its forms share


async def fetch_reasons(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """Fetch the commits that made or changed what the question is about, the one that it asks for first."""
    parts = request.get("parts", {})
    target = await find_target(code, parts.get("target", ""))
    if target is None or not (target.path or target.text):
        return Retrieved(refs=())
    verb = parts.get("verb", "").lower()
    found, is_whole, is_shallow = await _find_commits(code, target, first=verb.startswith(tuple(_ADDING)))
    facts = describe_target(target) | ({"shallow": "yes"} if is_shallow else {})
    asked = (
        "added" if verb.startswith(tuple(_ADDING)) else "removed" if verb.startswith(tuple(_REMOVING)) else "changed"
    )
    if asked == "removed" and (target.path or await _is_there(code, target.text)):
        asked = "changed"
    if asked == "added" and found:
        found = [found[-1], *found[:-1]]
    elif asked == "changed" and (telling := _find_telling(found, target, verb)) is not None:
        found = [telling, *(one for one in found if one is not telling)]
        asked = verb if verb.endswith("ed") and verb[:_STEM] in telling.subject.lower() else "named"
    if asked != "changed" and found:
        facts["release"] = await code.past.first_release(found[0].sha)
    if not is_whole:
        facts["partial"] = "yes"
    refs = [make_target_ref(target)] if target.path and not target.is_folder else []
    commits = [make_commit_ref(one) for one in found[:MAX_COMMITS]]
    if not commits:
        facts["problem"] = "No commit is known here that touched it."
    return (
        Retrieved(refs=[*refs, *commits], totals={"commits": len(found)}, facts={**facts, "asked": asked})
        if refs or commits
        else Retrieved(refs=())
    )


def _find_telling(found: Sequence[Revision], target: HistoryTarget, verb: str) -> Revision | None:
    """Find the commit whose subject says that it did what is asked; None where any change was asked for."""
    if not verb or verb.startswith(_CHANGING):
        return None
    name = (target.symbol.rpartition(".")[2] or target.text or target.path.rpartition("/")[2]).lower()
    named = [one for one in found if name in one.subject.lower()]
    stem = verb[:_STEM]
    return next((one for one in named if stem in one.subject.lower()), named[0] if named else None)


async def _is_there(code: CodeSearch, text: str) -> bool:
    return bool((await code.grep(re.escape(text), limit=1)).lines)


async def _find_commits(code: CodeSearch, target: HistoryTarget, *, first: bool) -> tuple[list[Revision], bool, bool]:
    """Find the commits of a target, newest first; whether these are all, and whether history is cut off here."""
    if target.text:
        log = await code.past.log(LogQuery(text=target.text, limit=MAX_TEXT_COMMITS))
        return list(log.revisions), log.complete, log.is_shallow
    log = await code.past.log(LogQuery(path=target.path, lines=target.lines, limit=MAX_COMMITS))
    found, is_whole = list(log.revisions), log.complete
    if target.lines and not found:  # following lines may take too long, where blaming them does not
        found = sorted(await _list_blamed(code, target), key=lambda one: -one.committed_at)
    if first and target.lines:
        earlier = await _find_earlier(code, target.symbol.rpartition(".")[2])
        if earlier is not None and earlier.revisions:
            # The lines themselves may go back to ones that others stood in before.
            oldest, is_whole = earlier.revisions[-1], earlier.complete
            found = [*(one for one in found if one.committed_at > oldest.committed_at), oldest]
    return found, is_whole, log.is_shallow


async def _list_blamed(code: CodeSearch, target: HistoryTarget) -> Sequence[Revision]:
    return [one.revision for one in await code.past.origins(target.location)]


async def _find_earlier(code: CodeSearch, name: str) -> CommitLog | None:
    """Find the commits that brought a name before it stood where it stands now; None for one that is everywhere."""
    if len(name) < _SHORTEST_NAME and not is_code_like(name):
        return None
    return await code.past.log(LogQuery(text=name, limit=MAX_TEXT_COMMITS))
