"""The process that highlights code: lexers are patterns that hostile code can hold up, so it is ended where one is."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pygments import lex
from pygments.lexers import get_lexer_for_filename
from pygments.lexers.special import TextLexer
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound

from indexer import serve_requests

Piece = tuple[str, str]  # the short name of a kind of token, and text


def main(arguments: Sequence[str]) -> None:
    """Serve: requests are objects with a `path` and `code`, answers are lines of pieces."""
    serve_requests(arguments, lambda body: json.dumps(split_tokens(**json.loads(body))).encode())


def split_tokens(path: str, code: str) -> list[list[Piece]]:
    """Return the lines of code, each in pieces by their kinds; a file of no known kind is plain text."""
    try:
        # Blank lines at the beginning count: lines are cited by their numbers.
        lexer = get_lexer_for_filename(path.rpartition("/")[2], stripnl=False, ensurenl=False)
    except ClassNotFound:
        lexer = TextLexer(stripnl=False, ensurenl=False)
    lines: list[list[Piece]] = [[]]
    for kind, value in lex(code, lexer):
        first, *following = value.split("\n")
        _add_piece(lines[-1], STANDARD_TYPES.get(kind, ""), first)
        for text in following:
            lines.append([])
            _add_piece(lines[-1], STANDARD_TYPES.get(kind, ""), text)
    return lines


def _add_piece(line: list[Piece], kind: str, text: str) -> None:
    if text:
        line.append((kind, text))
