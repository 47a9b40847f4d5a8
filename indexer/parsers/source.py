"""From the bytes of a file to masked text and what is in it; parsers alone do this."""

from __future__ import annotations

from indexer.bags import build_bags
from indexer.chunker import parse_file
from indexer.decoding import decode
from indexer.grammars import GRAMMARS, version
from indexer.languages import language_of
from indexer.packing import pack
from indexer.parsers.frames import Contents, Request, Unfit
from indexer.rules import content_verdict
from indexer.secrets import redact


def parse_source(request: Request, *, seconds: float) -> Contents | Unfit:
    """Decide on, decode, mask and parse one file, as a text of no language where that is known to fail."""
    reason = content_verdict(request.path, request.data, request.marks)
    text = decode(request.data) if reason is None else None
    if text is None:
        return Unfit(reason=reason or "binary")
    text = redact(text)
    grammar = _find_grammar(request, text)
    parsed = parse_file(request.path, text, plain=request.plain or request.known.get(grammar), seconds=seconds)
    return Contents(
        packed=pack(text),
        lines=text.count("\n") + (not text.endswith("\n") and bool(text)),
        parsed=parsed,
        bags=build_bags(request.path, parsed),
        grammar=grammar or (version(GRAMMARS[parsed.language]) if parsed.plain else ""),
    )


def _find_grammar(request: Request, text: str) -> str:
    """Name the grammar of a file that one has failed over; to find out its version would take too long for all."""
    grammar = GRAMMARS.get(language_of(request.path, text)) if request.known else None
    return "" if grammar is None else version(grammar)
