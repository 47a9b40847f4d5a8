"""Reads limits in a question: tests or other code, places, a language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from indexer.text.languages import LANGUAGES
from indexer.text.linear_patterns import compile_pattern
from indexer.types import SourceType

_WORD = re.compile(r"[^\s,;()?!]+")
_TESTS = frozenset(
    "test tests testing spec specs unittests testcode testsuite тест тесты тестах тестов pruebas testes テスト 测试"
    " 테스트".split()
)
_WITHOUT = frozenset(
    "outside except without excluding exclude excl ignoring ignore besides beyond minus not non other apart aside no"
    " außerhalb ohne außer ausser hors sauf sans fuera excepto salvo sin fora exceto sem вне кроме без".split()
)
_ONLY = frozenset("only just solely nur seulement uniquement solo sólo solamente só somente apenas только".split())
_WITHIN = frozenset("in within inside under below im in dans en em no na nos nas в".split())
_OF = frozenset("to of for".split())
_BETWEEN = frozenset(
    "the our any all my in within from than for counting including considering and but of unit integration den der die"
    " von les des los las os as de dos das".split()
)
_SUITE = frozenset("code files file suite suites folder directory".split())
FOLDERS = frozenset("folder directory dir package module ordner verzeichnis dossier carpeta pasta папке".split())
_WHETHER = frozenset("is are was were does do did has have".split())
_USING = ("use", "usage", "call", "import", "need", "invoke", "reference", "depend", "using")
# Words with which a question asks for something else, or for the contrary.
_NO_WHETHER = frozenset(
    "who what where which how when why unused dead obsolete remove removed drop delete gone not no never nothing"
    " nobody or".split()
)
_MAX_BETWEEN = 3  # words between what limits and what it limits to
_ALL_BUT_TESTS: tuple[SourceType, ...] = ("code", "doc", "config")


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedScope:
    """A question without the words that limit it to tests or to other code; no `source_types` if there are none."""

    rest: str
    source_types: tuple[SourceType, ...] = ()


def read_scope(question: str) -> AskedScope:
    """Read "outside tests", "not counting tests", "only in tests"."""
    words = list(_WORD.finditer(question))
    spelt = [found[0].strip(".:\"'`").lower() for found in words]
    for at, word in enumerate(spelt):
        if word in {"non-test", "non-tests", "nontest"}:
            return _cut(question, words, at, at, _ALL_BUT_TESTS)
        if word not in _TESTS:
            continue
        first = at
        while first and at - first <= _MAX_BETWEEN and spelt[first - 1] in _BETWEEN | _WITHOUT | _ONLY | _WITHIN:
            first -= 1
        said = set(spelt[first:at])
        if said & _WITHOUT:
            return _cut(question, words, first, at, _ALL_BUT_TESTS)
        if said & (_ONLY | _WITHIN) or spelt[at + 1 : at + 2] == ["only"]:
            return _cut(question, words, first, at, ("test",))
    return AskedScope(rest=question)


def _cut(
    question: str, words: list[re.Match[str]], first: int, last: int, source_types: tuple[SourceType, ...]
) -> AskedScope:
    while last + 1 < len(words) and words[last + 1][0].lower() in _SUITE | _ONLY:
        last += 1
    before, after = question[: words[first].start()].rstrip(" ,(-"), question[words[last].end() :].lstrip(" ,)")
    return AskedScope(rest=f"{before} {after}".strip(), source_types=source_types)


def list_place_words(question: str, *, is_loose: bool = False) -> Iterator[str]:
    """Yield the words in place positions: "in the parser", "the parser module".

    If `loose`, also objects of actions: "changes to the parser".
    """
    words = [word.strip("?!.,;:`'\"") for word in question.split()]
    leading = _WITHIN | _OF if is_loose else _WITHIN
    for at, word in enumerate(words):
        before = {one.lower() for one in words[max(0, at - 2) : at]}
        is_led = bool(leading & before) and word.lower() not in _BETWEEN
        if is_led or "".join(words[at + 1 : at + 2]).lower() in FOLDERS:
            yield word


def asks_for_yes_or_no(question: str) -> bool:
    """Whether a question asks for a yes or no about uses or calls."""
    words = [found[0].lower() for found in _WORD.finditer(question)]
    is_about_use = any(word.startswith(_USING) for word in words)
    return words[:1] != [] and words[0] in _WHETHER and is_about_use and _NO_WHETHER.isdisjoint(words)


_NAMES = {spoken.lower(): language.spoken_names[0] for language in LANGUAGES for spoken in language.spoken_names}
_WORDS = "|".join(re.escape(name) for name in sorted(_NAMES, key=len, reverse=True))
_ENDS_WITH_IT = compile_pattern(rf"(?is)^(?P<rest>.*?)[\s,]+in\s+(?:the\s+)?(?P<name>{_WORDS})(?:\s+code)?[\s?.!]*")
_ONLY_IT = re.compile(
    rf"(?:and|but|or|what\s+about|how\s+about|now)?[\s,]*(?:in|for)\s+(?:the\s+)?(?P<name>{_WORDS})(?:\s+code)?[\s?.!]*",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class LanguageFilter:
    """A question without the words that name its language, the language, and its file endings."""

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
    """Return the file endings of a language, all kinds together."""
    languages = [language for language in LANGUAGES if spoken in language.spoken_names]
    return tuple(f".{ending}" for language in languages for ending in language.endings + language.shared_endings)


def parse_only_language(question: str) -> str:
    """Return the language of a question that says only that ("and in Go?"), or an empty string."""
    found = _ONLY_IT.fullmatch(question.strip())
    return _NAMES[found["name"].lower()] if found else ""
