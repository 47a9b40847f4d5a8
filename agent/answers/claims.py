"""What a sentence of an answer names, and whether lines of code say any of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent.answers.spans import split_spans
from agent.questions.mentions import is_code_like
from agent.questions.terms import find_content_terms, match_terms
from indexer.patterns import compile_pattern

_MARK = re.compile(r"\[\d{1,4}\]")
_IDENTIFIER = re.compile(r"[^\W\d]\w+")
_WORD = re.compile(r"[^\W\d][\w$]*(?:(?:\.|::|#|->)[^\W\d]\w*)*(?:\(\))?")
_PATH = compile_pattern(r"[\w.@+-]*(?:/[\w.@+-]+)+|[\w@+-][\w.@+-]*\.[A-Za-z][A-Za-z0-9]{0,5}")
# Words that stand in code spans and prove nothing, because they are everywhere.
_COMMON = frozenset(
    """def class return self this none null true false import from function const let var public private static void int
    str string bool the and for with not new async await if else try except raise lambda list dict""".split()
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """The names in a sentence, the files, and its words that carry meaning, all lower-case."""

    names: frozenset[str]
    paths: frozenset[str]
    terms: frozenset[str]

    def is_said_in(self, text: str, path: str) -> bool:
        """Whether lines of the file at `path` say one of the names; where there is none, a word or the file."""
        if self.names:
            return bool(self.names & _identifiers(text))
        return any(_is_end(named, path) for named in self.paths) or bool(match_terms(f"{path} {text}", self.terms))

    def is_wholly_said_in(self, text: str) -> bool:
        """Whether lines say every one of the names."""
        return self.names <= _identifiers(text)


def read_claim(sentence: str) -> Claim:
    """Find what a sentence names."""
    bare = _MARK.sub(" ", sentence)
    prose, spans = split_spans(bare)
    paths = {found for span in spans for found in _PATH.findall(span) if "/" in found or _PATH.fullmatch(span.strip())}
    paths |= {word for word in _PATH.findall(prose) if "/" in word}
    quoted = _PATH.sub(lambda found: " " if found[0] in paths else found[0], " ".join(spans))
    words = [word[0] for word in _WORD.finditer(prose) if is_code_like(word[0]) and word[0] not in paths]
    dotted = {path for path in paths if "/" not in path}  # `Session.send` looks like a file
    return Claim(
        names=_identifiers(" ".join([quoted, *words]))
        | frozenset(_last(path) for path in dotted if not _is_file(path)),
        paths=frozenset(path.lower() for path in paths),
        terms=find_content_terms(bare),
    )


def _identifiers(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _IDENTIFIER.findall(text)) - _COMMON


def _last(dotted: str) -> str:
    return dotted.rpartition(".")[2].lower()


def _is_file(name: str) -> bool:
    ending = name.rpartition(".")[2].lower()
    return ending in _ENDINGS


def _is_end(named: str, path: str) -> bool:
    return path.lower() == named or path.lower().endswith("/" + named.lstrip("./"))


_ENDINGS = frozenset(
    """py pyi js jsx ts tsx mjs cjs go rs java kt kts c h cc cpp hpp cs rb php swift scala lua sh bash zsh ex exs hs zig
    md rst txt toml yaml yml json cfg ini sql html css scss vue svelte xml gradle lock mod proto tf""".split()
)
