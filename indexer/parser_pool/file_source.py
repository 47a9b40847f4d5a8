"""From the bytes of a file to masked text and what is in it; parsers alone do this."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from indexer.git.file_contents import UnfitContents, read_contents
from indexer.parser_pool.wire_format import UNKNOWN_ENCODING, ParsedContents, Request, SkippedFile
from indexer.parsing.containers import is_container
from indexer.parsing.ctags import Ctags
from indexer.parsing.file_parser import parse_file
from indexer.parsing.grammars import GRAMMARS, describe_version
from indexer.parsing.telling_paths import reduce_path
from indexer.search.token_bags import build_bags
from indexer.text.decoding import find_encoding, pack
from indexer.text.languages import detect_language, find_language


def parse_source(request: Request, *, seconds: float, ctags: Ctags | None = None) -> ParsedContents | SkippedFile:
    """Decide on, decode, mask and parse one file, as a text of no language where that is known to fail.

    Of its path only what `reduce_path` leaves may be looked at: equal contents are not parsed again.
    """
    path = reduce_path(request.path)
    try:
        text = read_contents(path, request.data, request.marks, usual=request.usual)
    except UnfitContents as error:
        return SkippedFile(reason=str(error))
    language = detect_language(path, text)
    grammar = _name_reader(language, ctags) if request.known else ""
    is_tagged = ctags is not None and _is_tagged(language)
    parsed = parse_file(
        path,
        text,
        plain=request.plain or request.known.get(grammar),
        seconds=seconds,
        find_symbols=partial(ctags.find_symbols, language, seconds=seconds) if ctags and is_tagged else None,
    )
    encoding = find_encoding(request.data, declared=request.marks.encoding, usual=request.usual)
    if parsed.plain is None and encoding is None:
        parsed, grammar = replace(parsed, plain="encoding"), UNKNOWN_ENCODING
    return ParsedContents(
        packed=pack(text),
        lines=text.count("\n") + (not text.endswith("\n") and bool(text)),
        parsed=parsed,
        bags=build_bags(parsed),
        grammar=grammar or (_name_reader(parsed.language, ctags) if parsed.plain else ""),
    )


def _is_tagged(language: str) -> bool:
    known = find_language(language)
    return known is not None and bool(known.ctags) and language not in GRAMMARS


def _name_reader(language: str, ctags: Ctags | None) -> str:
    """Name what reads the code of a language: a grammar or a program with its version, or the reader of a container."""
    grammar = GRAMMARS.get(language)
    if ctags is not None and _is_tagged(language):
        return f"ctags {ctags.version}"
    return (
        f"container-{language} 1"
        if grammar is None and is_container(language)
        else describe_version(grammar)
        if grammar
        else ""
    )
