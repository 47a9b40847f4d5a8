"""Finds texts quoted verbatim in a question: messages, options, environment variables."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent.text.message_match import is_confident_match, match_message
from indexer.text.linear_patterns import compile_pattern

MAX_LITERALS = 3

_QUOTED = re.compile(r"[\"“”«](?P<double>[^\"“”«»\n]{3,300})[\"“”»]|(?<!\w)['‘](?P<single>[^'‘’\n]{3,300})['’](?!\w)")
_TICKED = re.compile(r"`(?P<ticked>[^`\n]{3,300})`")
_EXACT = re.compile(r"(?<![\w./-])(?:--[A-Za-z][\w-]{1,60}|[A-Z][A-Z0-9]{0,40}(?:_[A-Z0-9]{1,40}){1,8})(?![\w.(-])")
_FLAG = re.compile(r"(?<!\S)(?P<flag>-[A-Za-z])\s+(?:option|flag|switch|argument)\b")
_ASKS = re.compile(
    r"[?？؟]\s*$|^\s*[¿؟]|"
    r"^\s*(?:who|what|which|where|when|why|how"
    r"|(?:is|are|do|does|did|can|could|should|would|will|was|were|has|have)(?!\s+not\b)"
    r"|wo|wie|was|wer|wann|warum|wieso|welche\w*|d[oó]nde|c[oó]mo|cu[aá]ndo|qu[eé]|qui[eé]n|o[uù]|comment|quoi|qui|quand"
    r"|quelles?|pourquoi"
    r"|где|как|что|кто|почему|зачем|когда|какой|какие)\b",
    re.IGNORECASE,
)
# Imperatives, which name a wish; programs report results and failures.
_ORDERS = compile_pattern(
    r"(?i)\s*(?:please\s+|now\s+|and\s+|then\s+|let'?s\s+|help\s+me\s+(?:to\s+)?)*"
    r"(?:add|analy[sz]e|answer|check|clarify|compare|count|create|debug|define|describe|detail|document|draw|enumerate"
    r"|explain|explore|find|fix|follow|give|go\s+through|grep|help|identify|illustrate|implement|inspect|investigate"
    r"|list|locate|look|make|map|name|navigate|open|outline|point|print|read|refactor|remove|rename|report|review"
    r"|search|see|show|sketch|step|summari[sz]e|take|teach|tell|test|trace|translate|understand|verify|visuali[sz]e"
    r"|walk|write|beschreib\w*|erklär\w*|finde|liste|nenne|such\w*|verfolg\w*|zeig\w*|vergleich\w*|affiche|cherche"
    r"|décris|explique|montre|résume|trouve|busca|compara|encuentra|explica|lista|muestra|resume|sigue|descreva"
    r"|encontre|mostre|descrivi|elenca|mostra|spiega|trova|покажи|найди|объясни|опиши|расскажи)\s+(?P<object>\w+)"
)
_NO_OBJECT = frozenset({"error", "failed", "failure", "timed"})  # "Read failed" is no order
_DID_YOU_MEAN = compile_pattern(r"(?i)[.!:'\")]\s+did you mean\b[^\n?]*\?\s*$")
_WORD = re.compile(r"[^\W_]+")
_MIN_MESSAGE = 4
_MAX_ASKING = 2_000  # characters


@dataclass(frozen=True, kw_only=True, slots=True)
class Literal:
    """A text to find verbatim. Messages are compared word by word, because code splits them and fills them in."""

    text: str
    is_message: bool

    def find_lines(self, code: str) -> tuple[int, int] | None:
        """Return the first and the last line of the code that spell the text, counted from 0; None without it."""
        if not self.is_message:
            return _find_exact_line(code, self.text)
        match = match_message(self.text, code)
        return (match.start, match.end) if is_confident_match(self.text, match) else None


def find_literals(question: str) -> tuple[Literal, ...]:
    """Find the texts that the question quotes."""
    messages = find_quoted_messages(question)
    exact = _find_exact_texts(question)
    found = [Literal(text=text, is_message=True) for text in messages]
    found += [Literal(text=text, is_message=False) for text in exact]
    return tuple(dict.fromkeys(found))[:MAX_LITERALS]


def find_quoted_messages(question: str) -> list[str]:
    """Find the messages in quotation marks or backticks."""
    spans = [found["double"] or found["single"] for found in _QUOTED.finditer(question)]
    spans += [found["ticked"] for found in _TICKED.finditer(question)]
    return [span.strip() for span in spans if len(_WORD.findall(span)) >= 2 and " " in span.strip()]


def is_asking(text: str) -> bool:
    """Whether a text reads like a question or an order, not like a program's "did you mean"."""
    said = _DID_YOU_MEAN.sub("", text[:_MAX_ASKING])
    order = _ORDERS.match(said)
    return bool(_ASKS.search(said)) or (order is not None and order["object"].lower() not in _NO_OBJECT)


def parse_literal(query: str) -> Literal | None:
    """Parse a search query as verbatim text; None for a question in words."""
    text = query.strip()
    if " " not in text:
        is_exact = text.isascii() and not text.endswith("?")
        return Literal(text=text, is_message=False) if is_exact else None
    exact = _find_exact_texts(text)
    return Literal(text=exact[0], is_message=False) if exact and not is_asking(text) else None


def make_literal_query(literal: Literal) -> str:
    """Make the query to find a text: a flag of one letter ranks nothing alone."""
    short = not literal.is_message and len(literal.text) < _MIN_MESSAGE
    return f"{literal.text} option command line argument parser" if short else literal.text


def _find_exact_texts(text: str) -> list[str]:
    return [*_EXACT.findall(text), *(found["flag"] for found in _FLAG.finditer(text))]


def _find_exact_line(code: str, text: str) -> tuple[int, int] | None:
    found = re.search(rf"(?<![\w-]){re.escape(text)}(?![\w-])", code)
    return (code.count("\n", 0, found.start()),) * 2 if found is not None else None
