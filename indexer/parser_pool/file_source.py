"""From the bytes of a file to masked text and what is in it; parsers alone do this."""

from __future__ import annotations

from dataclasses import replace

from indexer.git.file_selection import judge_content
from indexer.parser_pool.wire_format import UNKNOWN_ENCODING, ParsedContents, Request, SkippedFile
from indexer.parsing.file_parser import parse_file
from indexer.parsing.grammars import GRAMMARS, describe_version
from indexer.parsing.telling_paths import reduce_path
from indexer.search.token_bags import build_bags
from indexer.secrets import redact_secrets
from indexer.text.decoding import decode_file, find_encoding, pack
from indexer.text.languages import detect_language


def parse_source(request: Request, *, seconds: float) -> ParsedContents | SkippedFile:
    """Decide on, decode, mask and parse one file, as a text of no language where that is known to fail.

    Of its path only what `reduce_path` leaves may be looked at: equal contents are not parsed again.
    """
    path = reduce_path(request.path)
    reason = judge_content(path, request.data, request.marks)
    hints = {"declared": request.marks.encoding, "usual": request.usual}
    text = decode_file(request.data, **hints) if reason is None else None
    if text is None:
        return SkippedFile(reason=reason or "binary")
    text = redact_secrets(text)
    grammar = _find_grammar(path, request, text)
    parsed = parse_file(path, text, plain=request.plain or request.known.get(grammar), seconds=seconds)
    if parsed.plain is None and find_encoding(request.data, **hints) is None:
        parsed, grammar = replace(parsed, plain="encoding"), UNKNOWN_ENCODING
    return ParsedContents(
        packed=pack(text),
        lines=text.count("\n") + (not text.endswith("\n") and bool(text)),
        parsed=parsed,
        bags=build_bags(parsed),
        grammar=grammar or (describe_version(GRAMMARS[parsed.language]) if parsed.plain else ""),
    )


def _find_grammar(path: str, request: Request, text: str) -> str:
    """Name the grammar of a file that one has failed over; to find out its version would take too long for all."""
    grammar = GRAMMARS.get(detect_language(path, text)) if request.known else None
    return "" if grammar is None else describe_version(grammar)
