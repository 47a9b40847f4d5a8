"""The messages between citebot and its parsers: values, and their pure data form.

A parser has read hostile text with code in C. So nothing in its reply is executed, as a pickle
would be, and unexpected forms are errors.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from operator import attrgetter
from typing import Any, get_args

import ormsgpack

from indexer.git.gitattributes import UNMARKED, FileAttributes
from indexer.text.tokens import Bag
from indexer.types import Chunk, Import, ParsedFile, PlainReason, Reference, Registration, Symbol

HEADER = struct.Struct(">I")  # the length of what follows
LONGEST = 64_000_000  # bytes
UNKNOWN_ENCODING = "encoding"  # stands for a grammar where a text is parsed, but its encoding is unknown

_CHUNK = attrgetter("start_line", "end_line", "text", "scope", "names")
_SYMBOL = attrgetter("name", "qualified_name", "kind", "signature", "doc", "start_line", "end_line")
_REFERENCE = attrgetter("name", "qualifier", "kind", "line", "scope")
_IMPORT = attrgetter("module", "name", "alias", "line")
_REGISTRATION = attrgetter("kind", "name", "detail", "help", "handler", "line")


class Malformed(Exception):
    """A parser's message does not have the expected form."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One file to parse. `known` are the grammars that failed over its contents before, and why.

    With `plain` it is read as plain text, for that reason. `usual` is the encoding of the repository's other files.
    """

    path: str
    data: bytes
    marks: FileAttributes = UNMARKED
    known: Mapping[str, PlainReason] = field(default_factory=dict)
    plain: PlainReason | None = None
    usual: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedContents:
    """The text of a file, secrets masked and packed, its parsed contents, and the tokens of its chunks.

    If it was read as plain text although it has a `grammar`, that is named with its version.
    """

    packed: bytes
    lines: int
    parsed: ParsedFile
    bags: tuple[Bag, ...]
    grammar: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class SkippedFile:
    """The reason why the contents of a file are not indexed."""

    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Failed:
    """A parser raised an error for a file, which is a bug; the parser continues."""

    traceback: str


Reply = ParsedContents | SkippedFile | Failed


def pack_request(request: Request) -> bytes:
    """Write a request as a frame."""
    marks = astuple(request.marks)
    return _pack_frame((request.path, request.data, marks, dict(request.known), request.plain, request.usual))


def unpack_request(body: bytes) -> Request:
    """Read a request."""
    path, data, (generated, vendored, encoding, is_large), known, plain, usual = ormsgpack.unpackb(body)
    marks = FileAttributes(generated=generated, vendored=vendored, encoding=encoding, is_large=is_large)
    return Request(path=path, data=data, marks=marks, known=known, plain=plain, usual=usual)


def pack_reply(reply: Reply) -> bytes:
    """Write a reply as a frame; `MemoryError` for an overlong one."""
    if isinstance(reply, SkippedFile):
        return _pack_frame(("unfit", reply.reason))
    if isinstance(reply, Failed):
        return _pack_frame(("failed", reply.traceback))
    parsed = reply.parsed
    return _pack_frame(
        (
            "contents",
            (reply.packed, reply.lines, reply.grammar, parsed.language, parsed.plain),
            tuple(map(_CHUNK, parsed.chunks)),
            tuple(map(_SYMBOL, parsed.symbols)),
            tuple(map(_REFERENCE, parsed.references)),
            tuple(map(_IMPORT, parsed.imports)),
            tuple(map(_REGISTRATION, parsed.registrations)),
            reply.bags,
        )
    )


def unpack_reply(body: bytes) -> Reply:
    """Read a reply; `Malformed` for anything else."""
    try:
        kind, *rest = ormsgpack.unpackb(body)
        if kind == "contents":
            return _unpack_contents(rest)
        if kind in {"unfit", "failed"}:
            (text,) = rest
            return (
                SkippedFile(reason=_check_type(text, str))
                if kind == "unfit"
                else Failed(traceback=_check_type(text, str))
            )
    except (ValueError, TypeError) as error:
        raise Malformed(str(error)) from error
    raise Malformed(f"a reply of the kind {kind!r}")


def _pack_frame(value: object) -> bytes:
    body = ormsgpack.packb(value)
    if len(body) > LONGEST:
        raise MemoryError
    return HEADER.pack(len(body)) + body


def _unpack_contents(parts: list[Any]) -> ParsedContents:
    head, chunks, symbols, references, imports, registrations, bags = parts
    packed, lines, grammar, language, plain = head
    if plain is not None and plain not in get_args(PlainReason):
        raise Malformed(f"the reason {plain!r}")
    parsed = ParsedFile(
        language=_check_type(language, str),
        chunks=tuple(
            Chunk(start_line=first, end_line=last, text=text, scope=scope, names=tuple(names))
            for first, last, text, scope, names in chunks
        ),
        symbols=tuple(
            Symbol(
                name=name,
                qualified_name=qualified,
                kind=kind,
                signature=signature,
                doc=doc,
                start_line=first,
                end_line=last,
            )
            for name, qualified, kind, signature, doc, first, last in symbols
        ),
        references=tuple(
            Reference(name=name, qualifier=qualifier, kind=kind, line=line, scope=scope)
            for name, qualifier, kind, line, scope in references
        ),
        imports=tuple(
            Import(module=module, name=name, alias=alias, line=line) for module, name, alias, line in imports
        ),
        registrations=tuple(
            Registration(kind=kind, name=name, detail=detail, help=said, handler=handler, line=line)
            for kind, name, detail, said, handler, line in registrations
        ),
        plain=plain,
    )
    if len(bags) != len(parsed.chunks):
        raise Malformed("as many bags as chunks are expected")
    return ParsedContents(
        packed=_check_type(packed, bytes),
        lines=_check_type(lines, int),
        parsed=parsed,
        bags=tuple(_check_type(bag, dict) for bag in bags),
        grammar=_check_type(grammar, str),
    )


def _check_type(value: Any, kind: type[Any]) -> Any:
    if not isinstance(value, kind):
        raise Malformed(f"{type(value).__name__} instead of {kind.__name__}")
    return value
