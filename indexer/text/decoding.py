"""Decodes the bytes of files: which are text at all, in which encoding, and how they are kept small."""

from __future__ import annotations

import codecs
import zlib

_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SNIFFED = 8000  # bytes that git looks at for the same question
_TEXT_CONTROLS = b"\t\n\v\f\r\x1b\b"
_CONTROLS = bytes(byte for byte in range(32) if byte not in _TEXT_CONTROLS) + b"\x7f"
_LFS_HEAD = b"version https://git-lfs.github.com/spec/"
_LFS_LARGEST = 1024  # bytes, by the LFS specification

_LEVEL = 1  # the next one takes a third longer and saves a twentieth


def decode_file(data: bytes) -> str | None:
    """Turn a file's bytes into text with LF line ends, or None for a binary file; line numbers stay as they were.

    UTF-8, UTF-16 and UTF-32 by mark, else Windows-1252. The text can always be encoded as UTF-8, and a NUL
    becomes U+FFFD, as SQLite and terminals stop at one.
    """
    encoding = _detect_bom(data)
    if encoding is not None:
        text = _try_decode(data, encoding)
    elif is_binary(data):
        text = None
    else:
        text = _try_decode(data, "utf-8-sig")
        text = _decode_western(data) if text is None else text
    return None if text is None else text.replace("\r\n", "\n").replace("\0", "\ufffd")


def is_binary(data: bytes) -> bool:
    """Tell whether the beginning of a file says that it is no text."""
    return _detect_bom(data) is None and b"\0" in data[:_SNIFFED]


def is_lfs_pointer(data: bytes) -> bool:
    """Tell whether the file stands for another one that Git LFS keeps elsewhere."""
    return len(data) <= _LFS_LARGEST and data.startswith(_LFS_HEAD)


def pack(text: str) -> bytes:
    """Compress a text."""
    return zlib.compress(text.encode(), level=_LEVEL)


def unpack(packed: bytes) -> str:
    """Return the text that was packed; ValueError for anything else."""
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


def _decode_western(data: bytes) -> str | None:
    """Read what is not UTF-8 as Windows-1252, or as Latin-1 where that has no character; None if it is no text.

    Compressed data has a control character in every eighth byte or so, text in any 8-bit code has hardly one.
    """
    if b"\0" in data or (len(data) - len(data.translate(None, _CONTROLS))) * 100 > len(data):
        return None
    text = _try_decode(data, "cp1252")
    return data.decode("latin-1") if text is None else text
