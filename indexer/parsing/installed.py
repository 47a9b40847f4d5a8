"""The installed grammars, and how to read each language with them."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from indexer.parsing.bundled_grammars import is_bundled
from indexer.parsing.ctags import find_ctags_version
from indexer.text.languages import CONTAINERS, LANGUAGES, Grammar, Language, find_language
from indexer.types import Unparsed, UnparsedReason


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadLanguage:
    """A language with its file endings and names, and the things found in its files."""

    name: str
    files: tuple[str, ...]
    found: str


def is_installed(grammar: Grammar) -> bool:
    """Whether the wheel of a grammar is installed, or one that bundles it."""
    return has_own_wheel(grammar) or (bool(grammar.bundled) and is_bundled(grammar.bundled))


@cache
def has_own_wheel(grammar: Grammar) -> bool:
    """Whether the grammar's own wheel is installed."""
    return bool(grammar.package) and importlib.util.find_spec(grammar.package) is not None


def list_languages() -> list[ReadLanguage]:
    """List every recognized language by name."""
    rows = []
    for language in LANGUAGES:
        if language.ctags:
            found = (
                "definitions, by universal-ctags" if find_ctags_version() else "words; definitions with universal-ctags"
            )
        elif language.grammar is None:
            found = "the code in it, and uses in its markup" if language.name in CONTAINERS else "words"
        elif is_installed(language.grammar):
            found = "definitions, uses of names, imports"
        elif not language.grammar.package:  # bundled, and the bundle has none for this machine
            found = "words (no grammar for this system)"
        else:
            found = "words; definitions with the extra `languages`"
        files = (*(f".{ending}" for ending in (*language.endings, *language.shared_endings)), *language.file_names)
        rows.append(ReadLanguage(name=language.label, files=files, found=found))
    return sorted(rows, key=lambda row: row.name.lower())


def count_unparsed(languages: Iterable[str]) -> tuple[Unparsed, ...]:
    """Count the files, by language, whose definitions or calls cannot be found here, and say why."""
    counts = Counter(languages)
    known = ((find_language(name), count) for name, count in sorted(counts.items()))
    found = ((language, count, _explain_unparsed(language)) for language, count in known if language is not None)
    return tuple(Unparsed(language=one.label, files=count, reason=reason) for one, count, reason in found if reason)


def _explain_unparsed(language: Language) -> UnparsedReason | None:
    if language.ctags:
        return "calls" if find_ctags_version() else "ctags"
    return "grammar" if language.grammar is not None and not is_installed(language.grammar) else None
