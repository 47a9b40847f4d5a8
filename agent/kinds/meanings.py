"""The meaning of a question in some code: its form, and the definitions of its names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from agent.evidence.requests import request_lookup
from agent.ports import CodeSearch
from agent.questions.forms import read_form
from agent.questions.mentions import is_code_like, normalize_name
from agent.state import RetrievalRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedMeaning:
    """The meaning of a question, equal for questions that ask the same, and its language.

    `lookups` are those around its names, which any answer may mention.
    """

    key: str
    language: str
    lookups: Sequence[RetrievalRequest]


async def read_meaning(question: str, codes: Sequence[CodeSearch]) -> AskedMeaning | None:
    """Read the meaning of a question in some repositories; None if it says anything else."""
    form = read_form(question)
    if form is None:
        return None
    parts: list[object] = [form.meaning, form.scope]
    for written in form.names:
        name = normalize_name(written)
        known = {
            f"{code.repository}:{one.path}:{one.symbol.qualified_name}"
            for code in codes
            for one in await code.definitions(name)
        }
        if not known and not is_code_like(name) and f"`{written}" not in question:
            return None  # a word of prose
        parts.append([written, *sorted(known)])
    return AskedMeaning(
        key=json.dumps(parts),
        language=form.language,
        lookups=[request_lookup("usages", normalize_name(name), reasoning="around a name") for name in form.names],
    )
