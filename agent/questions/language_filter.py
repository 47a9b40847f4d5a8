"""Recognises that a question is about the code in one programming language."""

from __future__ import annotations

import re
from dataclasses import dataclass

from indexer.text.languages import LANGUAGES
from indexer.text.linear_patterns import compile_pattern

_NAMES = {spoken.lower(): language.spoken_names[0] for language in LANGUAGES for spoken in language.spoken_names}
_WORDS = "|".join(re.escape(name) for name in sorted(_NAMES, key=len, reverse=True))
_ENDS_WITH_IT = compile_pattern(rf"(?is)^(?P<rest>.*?)[\s,]+in\s+(?:the\s+)?(?P<name>{_WORDS})(?:\s+code)?[\s?.!]*")
_ONLY_IT = re.compile(
    rf"(?:and|but|or|what\s+about|how\s+about|now)?[\s,]*(?:in|for)\s+(?:the\s+)?(?P<name>{_WORDS})(?:\s+code)?[\s?.!]*",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class LanguageFilter:
    """A question without the words that name its language, the language, and how its files end."""

    question: str
    language: str
    endings: tuple[str, ...]


def parse_language_filter(question: str) -> LanguageFilter | None:
    """Split a question that ends with "in Go" or the like; None for any other."""
    found = _ENDS_WITH_IT.fullmatch(question)
    if found is None or not found["rest"].strip():
        return None
    name = _NAMES[found["name"].lower()]
    return LanguageFilter(question=found["rest"].strip(), language=name, endings=_list_endings(name))


def _list_endings(spoken: str) -> tuple[str, ...]:
    """Return how the files of a language may end, all its kinds together."""
    languages = [language for language in LANGUAGES if spoken in language.spoken_names]
    return tuple(f".{ending}" for language in languages for ending in language.endings + language.shared_endings)


def parse_only_language(question: str) -> str:
    """Return the language of a question that says nothing else ("and in Go?"), or an empty string."""
    found = _ONLY_IT.fullmatch(question.strip())
    return _NAMES[found["name"].lower()] if found else ""
