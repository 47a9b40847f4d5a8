"""The process that highlights code: hostile code can stall a lexer's patterns, so it is ended then."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pygments import lex
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.lexers.special import TextLexer
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound

from indexer import serve_requests

Piece = tuple[str, str]  # the short name of a kind of token, and text


def main(arguments: Sequence[str]) -> None:
    """Serve: requests are objects with `path` or `language`, `code` and `skip`, answers are lines of pieces."""
    serve_requests(arguments, lambda body: json.dumps(split_tokens(**json.loads(body))).encode())


def split_tokens(code: str, path: str = "", *, language: str = "", skip: int = 0) -> list[list[Piece]]:
    """Return the lines of code after the skipped ones, each in pieces by kind; unknown code is plain."""
    # Blank lines at the beginning count: lines are cited by their numbers.
    options: dict[str, Any] = {"stripnl": False, "ensurenl": False}
    name = path.rpartition("/")[2]
    try:
        lexer = get_lexer_by_name(language, **options) if language else get_lexer_for_filename(name, **options)
    except ClassNotFound:
        lexer = TextLexer(**options)
    lines: list[list[Piece]] = [[]]
    for kind, value in lex(code, lexer):
        first, *following = value.split("\n")
        _add_piece(lines[-1], STANDARD_TYPES.get(kind, ""), first)
        for text in following:
            lines.append([])
            _add_piece(lines[-1], STANDARD_TYPES.get(kind, ""), text)
    return lines[skip:]


def _add_piece(line: list[Piece], kind: str, text: str) -> None:
    if text:
        line.append((kind, text))
