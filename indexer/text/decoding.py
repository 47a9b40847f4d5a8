"""Decodes the bytes of files: whether they are text, their encoding, and how to store them compactly."""

from __future__ import annotations

import codecs
import re
import zlib
from functools import cache

import chardet

_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# The bytes of an ASCII character that are NUL.
_WIDE = {"utf-32-le": {1, 2, 3}, "utf-32-be": {0, 1, 2}, "utf-16-le": {1}, "utf-16-be": {0}}
_SNIFFED = 8000  # bytes that git looks at for the same question
_TEXT_CONTROLS = b"\t\n\v\f\r\x1b\b"
_CONTROLS = bytes(byte for byte in range(32) if byte not in _TEXT_CONTROLS) + b"\x7f"
_HIGH = bytes(range(0x80, 0x100))
_SHIFTED = re.compile(rb"\x1b\$[@B]")  # how ISO-2022-JP, which has no byte beyond ASCII, begins Japanese

# Encodings recognised by words: those of old code, and of old systems of Asia and Eastern Europe.
_ENCODINGS = (
    *(f"cp125{digit}" for digit in range(9)),
    *(f"iso8859-{part}" for part in (1, 2, 5, 7, 8, 9, 15)),
    *"utf-8 koi8-r koi8-u cp866 cp874 shift_jis cp932 euc-jp gb18030 big5 euc-kr cp949".split(),
)
_SUPERSETS = {
    "iso8859-1": ("cp1252",), "iso8859-9": ("cp1254",), "shift_jis": ("cp932",), "euc_kr": ("cp949",),
    "gb2312": ("gb18030",), "gbk": ("gb18030",), "tis-620": ("cp874",), "big5": ("cp950", "big5hkscs"),
}  # fmt: skip
_PROBE = bytes(range(0x20, 0x7F)) + b"\t\n\r"  # characters that an encoding must leave unchanged
_ESCAPING = {"unicode-escape", "raw-unicode-escape", "idna", "punycode"}  # encodings in name only
_DECLARING = 2_048  # bytes at the top and at the end that may name the encoding
_AT_TOP = re.compile(
    rb"""(?i)\A(?:[^\n]*\n)?\s*[^\w\s][^\n]*?(?:coding|charset)[ \t:=]+["']?([\w.:-]{2,40})"""
    rb"""|(?:<meta\b[^>]*?\bcharset\s*=\s*["']?|\\usepackage\[)([\w.:-]{2,40})"""
)
_AT_END = re.compile(
    rb"(?im)^(?:[^\w\n]+\n?|\n)(?:(?:vim?|ex):[^\n]*?\b(?:fileencoding|fenc)=|coding:[ \t]*)([\w.:-]{2,40})"
)
_JUDGED = 65_536  # bytes whose words are looked at
_TELLING = 20  # letters beyond ASCII that tell their encoding
_ACCENTS = 3  # such letters that hardly make a word of another script
_BIAS = 50  # how much less likely than another the usual encoding may look for so few
_CONVINCING = 0.02  # of chardet: real comments of some words get more, random bytes less
_C1 = re.compile(r"[\x80-\x9f]")  # control characters that no text has
_SIGN_IN_WORD = re.compile(r"[^\W\d_][\xa1-\xb6\xb8\xb9\xbb-\xbf\ufffd][^\W\d_]")
_LFS_HEAD = b"version https://git-lfs.github.com/spec/"
_LFS_LARGEST = 1024  # bytes, by the LFS specification

_LEVEL = 1  # the next one takes a third longer and saves a twentieth


def decode_file(data: bytes, *, declared: str = "", usual: str = "") -> str | None:
    """Decode a file into text with LF line ends, or None for a binary file; line numbers stay the same.

    `find_encoding` chooses the encoding, and explains the hints. The text can always be encoded as UTF-8, and a NUL
    becomes U+FFFD, as SQLite and terminals stop at one.
    """
    if is_binary(data):
        return None
    encoding = find_encoding(data, declared=declared, usual=usual)
    if encoding is None and _count_controls(data) * 100 > len(data):
        return None
    text = _try_decode(data, encoding or "cp1252")
    if text is None and (encoding is None or encoding.startswith("utf-8")):
        text = data.decode(encoding or "latin-1", "replace")
    return None if text is None else text.replace("\r\n", "\n").replace("\0", "\ufffd")


def find_encoding(data: bytes, *, declared: str = "", usual: str = "") -> str | None:
    """Name the encoding of a text: by its mark, UTF-8, the declared one, else by its words.

    `declared` is the repository's declaration for the file. `usual` is the encoding of most other files that are not
    UTF-8, and decides if the file has too few words. None if the encoding is unknown.
    """
    wide = _detect_bom(data) or _detect_wide(data)
    if wide is not None:
        return wide
    if _SHIFTED.search(data) and _try_decode(data, "iso2022_jp") is not None:
        return "iso2022_jp"
    if _try_decode(data, "utf-8") is not None:
        return "utf-8-sig"
    named = (encoding for name in (*_find_declarations(data), declared) for encoding in _resolve_encoding(name))
    return next((each for each in named if _try_decode(data, each) is not None), None) or _detect_by_words(data, usual)


def is_utf8(data: bytes) -> bool:
    """Whether a file is text in UTF-8 or ASCII, or no text."""
    return data.isascii() or b"\0" in data or _try_decode(data, "utf-8") is not None


def is_legacy(data: bytes) -> bool:
    """Whether a file is text in an undeclared encoding, with enough words to recognize it."""
    return _count_high(data) >= _TELLING and not is_utf8(data) and not _is_damaged_utf8(data)


def is_binary(data: bytes) -> bool:
    """Whether the beginning of a file shows that it is not text."""
    return b"\0" in data[:_SNIFFED] and _detect_bom(data) is None and _detect_wide(data) is None


def is_lfs_pointer(data: bytes) -> bool:
    """Whether the file is a Git LFS pointer."""
    return len(data) <= _LFS_LARGEST and data.startswith(_LFS_HEAD)


def pack(text: str) -> bytes:
    """Compress a text."""
    return zlib.compress(text.encode(), level=_LEVEL)


def unpack(packed: bytes) -> str:
    """Return a packed text; ValueError for anything else."""
    try:
        return zlib.decompress(packed).decode()
    except zlib.error as error:
        raise ValueError(str(error)) from error


def _detect_bom(data: bytes) -> str | None:
    return next((encoding for bom, encoding in _BOMS if data.startswith(bom)), None)


def _try_decode(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _detect_wide(data: bytes) -> str | None:
    """Recognize UTF-16 and UTF-32 without a mark by the NULs of its ASCII characters."""
    head = data[:_SNIFFED]
    if head.count(0) * 8 < len(head):
        return None
    for encoding, places in _WIDE.items():
        width = 4 if "32" in encoding else 2
        is_fit = all(
            (head[place::width].count(0) * 4 > len(head) // width) == (place in places) for place in range(width)
        )
        text = _try_decode(data, encoding) if is_fit else None
        if text and _count_controls(text[:_SNIFFED].encode()) == 0:
            return encoding
    return None


def _find_declarations(data: bytes) -> list[str]:
    """List the encodings that a file declares: at its top, or for Vim and Emacs at its end."""
    found = [*_AT_TOP.finditer(data[:_DECLARING]), *_AT_END.finditer(data[-_DECLARING:])]
    return [re.sub(r"-(?:unix|dos|mac)$", "", match[match.lastindex or 1].decode().lower()) for match in found]


@cache
def _resolve_encoding(name: str) -> tuple[str, ...]:
    """Return the codecs of a name, the most capable first; none for an encoding that changes ASCII."""
    try:
        codec = codecs.lookup(name.removeprefix("x-")).name
        if codec in _ESCAPING or _PROBE.decode(codec) != _PROBE.decode("ascii"):
            return ()
    except (LookupError, ValueError):
        return ()
    return (*_SUPERSETS.get(codec, ()), codec)


def _detect_by_words(data: bytes, usual: str) -> str | None:
    """Judge by the lines that are not ASCII; None if they are no text in any known encoding."""
    if _is_damaged_utf8(data):
        return "utf-8"
    lines = b"".join(line for line in data.split(b"\n") if not line.isascii())[:_JUDGED]
    found = chardet.detect_all(lines, ignore_threshold=True, include_encodings=_ENCODINGS, no_match_encoding="utf-8")
    scores = {
        encoding: each["confidence"]
        for each in reversed(found)
        for encoding in _resolve_encoding((each["encoding"] or "").lower())
    }
    candidates = sorted(scores, key=scores.__getitem__, reverse=True)
    best = max(scores.values(), default=0.0)
    likely = _choose_of_few(lines, usual)
    if scores.get(likely, 0) * _BIAS > best:
        candidates.insert(0, likely)
    elif best < _CONVINCING and _count_high(lines) >= _TELLING:
        return None
    texts = ((each, _try_decode(data, each)) for each in candidates)
    return next((each for each, text in texts if text is not None and not _C1.search(text)), None)


def _choose_of_few(lines: bytes, usual: str) -> str:
    """Choose the encoding of a text with few letters beyond ASCII; empty for many.

    That is the encoding of the rest of the repository, else Windows-1252, unless that puts symbols
    into words.
    """
    high = _count_high(lines)
    if usual or high > _ACCENTS:
        return usual if high < _TELLING else ""
    return "" if _SIGN_IN_WORD.search(lines.decode("cp1252", "replace")) else "cp1252"


def _is_damaged_utf8(data: bytes) -> bool:
    """Whether a text is UTF-8 except for a few bytes, such as the test of a decoder."""
    text = data.decode("utf-8", "replace")
    damaged = text.count("\ufffd")
    return (len(text) - len(text.encode("ascii", "ignore"))) > 5 * damaged


def _count_high(data: bytes) -> int:
    return len(data) - len(data.translate(None, _HIGH))


def _count_controls(data: bytes) -> int:
    """Count control characters: compressed data has one in every eighth byte or so, text hardly any."""
    return len(data) - len(data.translate(None, _CONTROLS))
