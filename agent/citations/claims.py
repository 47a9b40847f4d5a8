"""Reads what a sentence of an answer names: identifiers that it quotes or that no prose would be written like."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent.questions.mentions import is_code_like
from agent.questions.terms import is_content_word, split_words
from agent.text.citation_markers import MARKER
from agent.text.code_spans import split_spans
from indexer.text.languages import LANGUAGES
from indexer.text.linear_patterns import compile_pattern

STEM = 4  # letters by which a word is known, in whatever form and language
_SHORT = 3  # letters of a name whose last `s` is no plural
_ACRONYM = re.compile(r"\b[A-Z][A-Z0-9]{2,}(?:-\d+)?\b")
_COUNTER = re.compile(r"^[\W_]*\d+\s*[.)|]")  # before an entry of a list or in the first cell of a row
_NUMBER = re.compile(r"\d+")
_GROUPING = re.compile(r"(?<=\d)[,_](?=\d)")
_SEPARATORS = re.compile(r"[\W_]+")
_IDENTIFIER = re.compile(r"[^\W\d]\w+")
_WORD = re.compile(r"[^\W\d][\w$]*(?:(?:\.|::|#|->)[^\W\d]\w*)*(?:\(\))?")
_PATH = compile_pattern(r"[\w.@+-]*(?:/[\w.@+-]+)+|[\w@+-][\w.@+-]*\.[A-Za-z][A-Za-z0-9]{0,5}")
# Words that stand in code spans and prove nothing, because they are everywhere.
_COMMON = frozenset(
    """def class return self this none null true false import from function const let var public private static void int
    str string bool the and for with not new async await if else try except raise lambda list dict nil get http
    api""".split()
)
# Endings that are members more often than files: `message.text`, `self.conf`. Another dotted name is one of code.
_MEMBERS = frozenset(
    """bat cmd conf csv cu dockerfile fs graphql gql inl j2 jinja less m markdown mm plist pm profile properties
    props r rake ru sc targets text""".split()
)
_FILE_ENDINGS = frozenset(
    ending for language in LANGUAGES for ending in (*language.endings, *language.shared_endings)
) - _MEMBERS | {"lock", "mod"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """What one marker stands for: its own words, and the sentence that they are part of."""

    words: str
    sentence: str


def find_names(sentence: str) -> frozenset[str]:
    """Return the names in a sentence, lower-case; a file that it names is none."""
    prose, spans = split_spans(MARKER.sub(" ", sentence))
    paths = {found for span in spans for found in _PATH.findall(span) if "/" in found or _PATH.fullmatch(span.strip())}
    paths |= {word for word in _PATH.findall(prose) if "/" in word}
    quoted = _PATH.sub(lambda found: " " if found[0] in paths else found[0], " ".join(spans))
    words = [word[0] for word in _WORD.finditer(prose) if is_code_like(word[0]) and word[0] not in paths]
    dotted = {path for path in paths if "/" not in path}  # `Session.send` looks like a file
    endings = {ending for path in dotted if (ending := path.rpartition(".")[2].lower()) not in _FILE_ENDINGS}
    return find_identifiers(" ".join([quoted, *words])) | endings


def find_identifiers(text: str) -> frozenset[str]:
    """Return the identifiers of code, lower-case, but for those that are everywhere."""
    return frozenset(word.lower() for word in _IDENTIFIER.findall(text)) - _COMMON


def find_stems(text: str) -> frozenset[str]:
    """Return the beginnings of the words that carry meaning."""
    return frozenset(word[:STEM] for word in split_words(MARKER.sub(" ", text)) if is_content_word(word))


def find_specifics(words: str) -> frozenset[str]:
    """Return what the lines of a claim should say as well, condensed: names, words of what it quotes, acronyms."""
    _, spans = split_spans(MARKER.sub(" ", words))
    quoted = {word for span in spans for word in find_identifiers(span)}
    found = map(condense, find_names(words) | quoted | set(_ACRONYM.findall(words)))
    return (
        frozenset(each[:-1] if len(each) > 3 and each.endswith("s") else each for each in found if len(each) > 1)
        - _COMMON
    )


def find_claimed_numbers(words: str) -> frozenset[str]:
    """Return the numbers of a claim, without the one that counts an entry of a list."""
    return find_numbers(_COUNTER.sub("", MARKER.sub(" ", words)))


def find_numbers(text: str) -> frozenset[str]:
    """Return the numbers in a text, also those in names."""
    return frozenset(_NUMBER.findall(_GROUPING.sub("", text)))


def condense(text: str) -> str:
    """Return the letters and digits of a text alone, lower-case: `SHA-1`, `sha_1` and `sha1` are the same."""
    return _SEPARATORS.sub("", text.lower())
