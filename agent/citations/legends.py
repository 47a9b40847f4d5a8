"""The words that the check of citations puts into an answer, and the legend below it in the answer's language."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from agent.text.code_spans import split_spans

UNSOURCED, UNVERIFIED, CORRECTED = "*(unsourced)*", "*(unverified)*", "*(corrected)*"
Deed = Literal["unsourced", "unread", "read", "corrected"]
_WORDS: Mapping[Deed, str] = {
    "unsourced": UNSOURCED,
    "unread": UNVERIFIED,
    "read": UNVERIFIED,
    "corrected": CORRECTED,
}
_REMARK = re.compile(r" ?\*\((?:unsourced|unverified|corrected)\)\*(?::.*)?")
_LONGEST_READ = 4_000  # characters that tell a language


def write_legend(answer: str, deeds: Mapping[Deed, int]) -> str:
    """Say what was done, a line each, with how often; empty if nothing was."""
    told = _read_table()[find_language(answer)]
    return "\n".join(
        f"{word}: {told[deed].format(count=deeds[deed])}" for deed, word in _WORDS.items() if deeds.get(deed)
    )


def find_language(answer: str) -> str:
    """Return the language that an answer most likely has, English where nothing tells."""
    prose = f" {' '.join(split_spans(answer[:_LONGEST_READ])[0].lower().split())} "
    table = _read_table()
    return max(table, key=lambda language: sum(map(prose.count, table[language]["signs"])))


def remove_remarks(answer: str) -> str:
    """Return an answer without what the check has put into and below it."""
    return _REMARK.sub("", answer).rstrip()


@cache
def _read_table() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
