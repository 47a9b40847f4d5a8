"""Fetches what a repository registers: endpoints, commands, background tasks, events, models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent.evidence.retrieved import Retrieved
from agent.kinds.listing.narrowing import (
    DECLARED,
    find_narrowing_terms,
    gather_entries,
    keep_one_per_name,
    make_entry_ref,
    narrow_entries,
    narrow_to_path,
    narrow_to_sort,
)
from agent.ports import CodeSearch
from agent.state import EvidenceRef, RetrievalRequest
from indexer.text.linear_patterns import compile_pattern
from indexer.types import RegistrationKind

_NOUNS: tuple[tuple[str, RegistrationKind], ...] = (
    (r"task|job|worker|cron|aufgabe|tâche|tarea|タスク|任务", "task"),
    (r"command|befehl|kommando|commande|comando|コマンド|命令", "command"),
    (r"event|signal|ereignis|événement|señal|イベント|事件|listener|hook", "event"),
    (r"model|table|entit|schema|tabelle|modell|modèle|tablas?|モデル|模型", "model"),
    (r"endpoint|route|url|api|path|endpunkt|point d|エンドポイント|接口|路由|ルート|handler|page", "route"),
)
_ALIKE: Mapping[RegistrationKind, RegistrationKind] = {"task": "command", "command": "task"}
_PATTERNS = tuple((compile_pattern(f"(?i){words}"), kind) for words, kind in _NOUNS)


async def fetch_entry_points(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """List what is registered of the kind that a question asks for.

    Where nothing of it says the words of the question, commands and tasks, which many call by either name, are looked
    through together.
    """
    parts = request.get("parts", {})
    kind = _choose_kind(request["query"])
    found = await _list_entries(code, kind)
    narrowed = _narrow(found, parts, code.repository)
    if not narrowed and (other := _ALIKE.get(kind)):
        found = await _list_entries(code, other)
        narrowed = _narrow(found, parts, code.repository)
    return await gather_entries(code, narrowed, whole=len(found))


async def _list_entries(code: CodeSearch, kind: RegistrationKind) -> list[EvidenceRef]:
    found = [make_entry_ref(site) for site in await code.registrations([kind])]
    if kind == "event":  # it is handled in many places, and declared in one
        found.sort(key=lambda ref: ref["signature"] != DECLARED)
    return found if kind == "route" else keep_one_per_name(found)


def _narrow(found: Sequence[EvidenceRef], parts: Mapping[str, str], repository: str) -> list[EvidenceRef]:
    below = narrow_to_path(found, parts)
    if len(below) < len(found):
        return below
    return narrow_entries(narrow_to_sort(found, parts), find_narrowing_terms(parts, repository))


def _choose_kind(noun: str) -> RegistrationKind:
    return next((kind for pattern, kind in _PATTERNS if pattern.search(noun)), "route")
