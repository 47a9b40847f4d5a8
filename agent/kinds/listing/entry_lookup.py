"""Fetches what a repository registers: endpoints, commands, background tasks, events, models."""

from __future__ import annotations

from agent.evidence.retrieved import Retrieved
from agent.kinds.listing.narrowing import (
    DECLARED,
    find_narrowing_terms,
    gather_entries,
    keep_one_per_name,
    make_entry_ref,
    narrow_entries,
)
from agent.ports import CodeSearch
from agent.state import RetrievalRequest
from indexer.text.linear_patterns import compile_pattern
from indexer.types import RegistrationKind

_NOUNS: tuple[tuple[str, RegistrationKind], ...] = (
    (r"task|job|worker|cron|aufgabe|tâche|tarea|タスク|任务", "task"),
    (r"command|befehl|kommando|commande|comando|コマンド|命令", "command"),
    (r"event|signal|ereignis|événement|señal|イベント|事件|listener|hook", "event"),
    (r"model|table|entit|schema|tabelle|modell|modèle|tablas?|モデル|模型", "model"),
    (r"endpoint|route|url|api|path|endpunkt|point d|エンドポイント|接口|路由|ルート|handler|page", "route"),
)
_PATTERNS = tuple((compile_pattern(f"(?i){words}"), kind) for words, kind in _NOUNS)


async def fetch_entry_points(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """List what is registered of the kind that a question asks for."""
    parts = request.get("parts", {})
    kind = _choose_kind(parts.get("noun", "") or request["query"])
    found = [make_entry_ref(site) for site in await code.registrations([kind])]
    if kind == "event":  # it is handled in many places, and declared in one
        found.sort(key=lambda ref: ref["signature"] != DECLARED)
    if kind != "route":
        found = keep_one_per_name(found)
    narrowed = narrow_entries(found, find_narrowing_terms(parts, code.repository))
    return await gather_entries(code, narrowed, whole=len(found))


def _choose_kind(noun: str) -> RegistrationKind:
    return next((kind for pattern, kind in _PATTERNS if pattern.search(noun)), "route")
