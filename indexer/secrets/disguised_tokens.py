"""Finds tokens of providers that are written in pieces or in base64: over two lines, joined by `+`, in a manifest."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Sequence

import re2

from indexer.secrets.secret_rules import Rule

# What stands between two pieces of a string: quotes with a sign that joins them, or the end of a line.
_JOINT = (
    r"(?:[\"'`][ \t]{0,8}[+.&]{1,2}[ \t]{0,8}[\"'`]|"
    r"[\"'`]?[ \t]{0,8}[+.&\\]{0,2}[ \t]{0,8}\r?\n[ \t>#*]{0,40}[+.&]{0,2}[ \t]{0,8}[\"'`]?)"
)
_PIECE = "[A-Za-z0-9_/+=-]"
_SHORTEST_BEGINNING = 4  # characters of base64 that tell one beginning of a token from another

Mask = Callable[[bytes], bytes]


def write_split_pattern(rules: Sequence[Rule]) -> str:
    """Write the pattern of what begins like a token and continues behind a joint."""
    return rf"(?:{'|'.join(re.escape(each) for each in _list_beginnings(rules))}){_PIECE}*(?:{_JOINT}{_PIECE}{{4,}})+"


def measure_split_token(mask: Mask, found: bytes) -> int:
    """Return how much of what the pattern found is one token; 0 if it is none, or ends before the first joint."""
    pieces = re2.split(_JOINT.encode(), found)
    joined = b"".join(pieces)
    masked = mask(joined)
    if not masked.startswith(b"[REDACTED:") or not (length := len(joined) - len(masked.partition(b"]")[2])) > len(
        pieces[0]
    ):
        return 0
    end = 0
    for piece in pieces:
        end = found.index(piece, end) + min(len(piece), length)
        length -= len(piece)
        if length <= 0:
            break
    return end


def write_encoded_pattern(rules: Sequence[Rule]) -> str:
    """Write the pattern of base64 that has the beginning of a token in it, wherever in its triples."""
    beginnings = {each for beginning in _list_beginnings(rules) for each in _encode_beginning(beginning.encode())}
    return rf"[A-Za-z0-9+/]*(?:{'|'.join(re.escape(each) for each in sorted(beginnings))})[A-Za-z0-9+/]{{12,}}={{0,2}}"


def holds_token(mask: Mask, encoded: bytes) -> bool:
    """Whether a token is in what base64 says."""
    whole = encoded.rstrip(b"=")
    whole = whole[: len(whole) - (len(whole) % 4 == 1)]
    decoded = base64.b64decode(whole + b"=" * (-len(whole) % 4))
    return mask(decoded) != decoded


def _list_beginnings(rules: Iterable[Rule]) -> list[str]:
    """List the prefixes of tokens that a prefix identifies."""
    return sorted({word for rule in rules for word in rule.keywords if rule.begins(word)})


def _encode_beginning(beginning: bytes) -> Iterable[str]:
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + beginning).decode().rstrip("=")
        certain = encoded[(shift * 8 + 5) // 6 : (shift + len(beginning)) * 8 // 6]
        if len(certain) >= _SHORTEST_BEGINNING:
            yield certain
