"""Finds names in the sentences of an answer: quoted identifiers, and words that prose would not use."""

from __future__ import annotations

import re
from http import HTTPStatus

from agent.questions.mentions import is_code_like
from agent.questions.terms import UNSPACED, is_content_word, split_words
from agent.text.citation_markers import MARKER
from agent.text.code_marks import split_spans
from indexer.text.languages import LANGUAGES
from indexer.text.linear_patterns import compile_pattern

STEM = 4  # letters by which a word is known, in whatever form and language
_SHORT = 3  # letters of a name whose last `s` is no plural
_ACRONYM = re.compile(r"\b[A-Z][A-Z0-9]{2,}(?:-\d+)?\b")
_COUNTER = re.compile(r"^[\W_]*\d+\s*[.)|]")  # before an entry of a list or in the first cell of a row
_NUMBER = re.compile(r"\d+")
_HEX = re.compile(r"\b0[xX]([0-9a-fA-F]{1,16})\b")
_SHIFT = re.compile(r"\b1[uUlL]{0,3} ?<< ?(\d{1,2})\b")
# Of sizes and times: lines may count in smaller ones than a claim does.
_UNITS = [base**power for base in (1000, 1024, 60) for power in (1, 2, 3, 4)]
_MAX_NUMBER = 20  # digits of one that is divided by these
_UNIT = re.compile(r"\b[kKMGT](?:i?B|Hz)\b")
_ID = 7  # digits of an abbreviated commit, which are a part of its name
_STATUSES = {str(status.value): re.sub(r"\W", "", status.phrase.lower()) for status in HTTPStatus}
_GROUPING = re.compile(r"(?<=\d)[,_](?=\d)")
_SEPARATORS = re.compile(r"[\W_]+")
_IDENTIFIER = re.compile(r"[^\W\d]\w+")
_WORD = re.compile(r"[^\W\d][\w$]*(?:(?:\.|::|#|->)[^\W\d]\w*)*(?:\(\))?")
_PATH = compile_pattern(r"[\w.@+-]*(?:/[\w.@+-]+)+|[\w@+-][\w.@+-]*\.[A-Za-z][A-Za-z0-9]{0,5}")
# Words in code spans and prove nothing, because they are everywhere.
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


def find_names(sentence: str) -> frozenset[str]:
    """Return the names in a sentence, lower-case, except file names."""
    prose, spans = split_spans(UNSPACED.sub(" ", MARKER.sub(" ", sentence)))
    paths = {found for span in spans for found in _PATH.findall(span) if "/" in found or _PATH.fullmatch(span.strip())}
    paths |= {word for word in _PATH.findall(prose) if "/" in word}
    quoted = _PATH.sub(lambda found: " " if found[0] in paths else found[0], " ".join(spans))
    words = [word[0] for word in _WORD.finditer(prose) if is_code_like(word[0]) and word[0] not in paths]
    dotted = {path for path in paths if "/" not in path}  # `Session.send` looks like a file
    endings = {ending for path in dotted if (ending := path.rpartition(".")[2].lower()) not in _FILE_ENDINGS}
    return find_identifiers(" ".join([quoted, *words])) | endings


def find_identifiers(text: str) -> frozenset[str]:
    """Return the identifiers of code in lower case, except ubiquitous ones."""
    return frozenset(word.lower() for word in _IDENTIFIER.findall(text)) - _COMMON


def find_stems(text: str) -> frozenset[str]:
    """Return the stems of the meaningful words."""
    return frozenset(word[:STEM] for word in split_words(MARKER.sub(" ", text)) if is_content_word(word))


def find_specifics(words: str) -> frozenset[str]:
    """Return words that a claim's lines should contain, condensed: names, quoted words, acronyms."""
    text = _UNIT.sub(" ", UNSPACED.sub(" ", MARKER.sub(" ", words)))
    _, spans = split_spans(text)
    ends = " ".join(word.rpartition("/")[2] for span in spans for word in span.split())  # of paths, without the folders
    found = map(condense, find_names(text) | find_identifiers(ends) | set(_ACRONYM.findall(text)))
    return (
        frozenset(each[:-1] if len(each) > 3 and each.endswith("s") else each for each in found if len(each) > 1)
        - _COMMON
    )


def find_claimed_numbers(words: str) -> frozenset[str]:
    """Return the numbers of a claim, without a list number."""
    return find_numbers(_COUNTER.sub("", MARKER.sub(" ", words)))


def find_odd_numbers(words: str, said: str) -> frozenset[str]:
    """Return the numbers of a claim that the lines lack.

    An HTTP status may be given by its name, and a commit by its beginning.
    """
    claimed = find_claimed_numbers(words) - find_values(said)
    text = condense(said) if claimed else ""
    spelled = {each: _STATUSES.get(each, each if len(each) >= _ID else "\n") for each in claimed}
    return frozenset(each for each in claimed if spelled[each] not in text)


def find_values(text: str) -> frozenset[str]:
    """Return the numbers in lines, also as computed values, and in larger units."""
    values = {int(each) for each in find_numbers(text) if len(each) <= _MAX_NUMBER}
    # All bits are set in the last number below a size.
    values |= {int(each, 16) + more for each in _HEX.findall(text) for more in (0, 1)}
    values |= {1 << int(each) for each in _SHIFT.findall(text)}
    values |= {value // unit for value in values for unit in _UNITS if value % unit == 0}
    return find_numbers(text) | frozenset(map(str, values))


def find_numbers(text: str) -> frozenset[str]:
    """Return the numbers in a text, also those in names."""
    return frozenset(_NUMBER.findall(_GROUPING.sub("", text)))


def condense(text: str) -> str:
    """Return only the letters and digits of a text, in lower case: `SHA-1`, `sha_1` and `sha1` are the same."""
    return _SEPARATORS.sub("", text.lower())
