"""Produces the forms of a text that could hide an order: plain, folded, spaced out, encoded."""

from __future__ import annotations

import base64
import binascii
import codecs
import heapq
import html
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import unquote

import re2

from agent.text.storable import make_storable

# Everything after this is cut before any pattern looks at it; a compatibility form may be 18 times its source.
SCAN_LIMIT = 6000
_MAX_DECODED_SPANS = 8
_MIN_TAGS = 5  # a flag of a region is drawn by that many letters, and an order takes more

Disguise = Literal[
    "plain", "homoglyphs", "spaced", "leet", "base64", "hex", "tags", "rot13", "reversed", "escaped", "parts"
]

# Letters of other alphabets that are drawn like a Latin one.
_LOOKALIKES = str.maketrans(
    "абвгеёікмнорстухѕјԁһԛԝцοαβεικνρτυχγηωАВЕЅІЈКМНОРСТУХΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "abbreeikmhopctyxsjdhqwgoabeikvptuxynwABESIJKMHOPCTYXABEZHIKMNOPTYX",
)
_LEET = str.maketrans("013457@$!", "oieastasi")
_SPACED = re2.compile(r"(?:^|\s)(?:[^\s][ .\-_*]){2,80}[^\s](?:\s|$)")
_WORD_GAPS = re2.compile(r"[^\S\n]{2,}")
_LONG_RUN = re.compile(r"(.{1,4}?)\1{15,}", re.DOTALL)  # over cut text
_GAPS = re2.compile(r"[ .\-_*]")
_SPACES = re2.compile(r"[\t ]+")
_BLANK_LINES = re2.compile(r"\n\s*\n\s*\n")
_BASE64 = re2.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_DIGITS = re2.compile(r"\d+")


def _decode_base64(span: str) -> bytes:
    plain = span.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(plain + "=" * (-len(plain) % 4))


_CODES: Sequence[tuple[Disguise, Any, Callable[[str], bytes]]] = (
    ("base64", _BASE64, _decode_base64),
    (
        "base64",
        re2.compile(r"[A-Z2-7]{32,}={0,6}"),
        lambda span: base64.b32decode(span.rstrip("=") + "=" * (-len(span.rstrip("=")) % 8)),
    ),
    ("hex", re2.compile(r"(?:[0-9A-Fa-f]{2} ?){12,}"), bytes.fromhex),
    (
        "hex",
        re2.compile(r"(?:[01]{8} ?){12,}"),
        lambda span: bytes(int(bits, 2) for bits in re.findall("[01]{8}", span)),
    ),
    (
        "hex",
        re2.compile(r"(?:\b(?:3[2-9]|[4-9]\d|1[01]\d|12[0-6])[ ,;]{1,2}){11,}(?:1[01]\d|12[0-6]|[4-9]\d|3[2-9])\b"),
        lambda span: bytes(map(int, _DIGITS.findall(span))),
    ),
)
_JOINED = re2.compile(r"(?:[^\n]-){12,}[^\n]|(?:[^\n]_){12,}[^\n]|(?:[^\n]\|){12,}[^\n]|(?:[^\n]/){12,}[^\n]")
_MIN_LINES = 6  # of a word or two each, for lines to be read as one sentence
_ESCAPES = re2.compile(
    r"(?:(?:%[0-9A-Fa-f]{2}|&#x?[0-9A-Fa-f]{1,6};|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2})[ \w]{0,3}){4}"
)
_BACKSLASHES = re.compile(r"\\u([0-9A-Fa-f]{4})|\\x([0-9A-Fa-f]{2})")
_QUOTES = re2.compile(r"[\"'`“]([^\"'`“”\n]{2,200})[\"'`”]")
_HIDING = re2.compile(
    r"(?i)[a-z0-9]{24,}|(?:[0-9a-f]{2} ){12}|(?:[a-z][ .\-_*]){5}"
    r"|(?:%[0-9a-f]{2}|&#x?[0-9a-f]+;|\\u[0-9a-f]{4}|\\x[0-9a-f]{2}).{0,4}(?:%[0-9a-f]{2}|&#|\\u[0-9a-f]|\\x[0-9a-f])"
    r"|snoitcurtsni|tpmorp|erongi|vafgehpgvba|cebzcg|vtaber|[\x{E0020}-\x{E007E}]"
)
_UNSEEN = re2.compile(r"[\p{Cf}\p{Co}]")
_MIXED = re2.compile(r"[a-zA-Z][\p{Cyrillic}\p{Greek}]|[\p{Cyrillic}\p{Greek}][a-zA-Z]")
# Words that a text turned round or shifted by thirteen letters has where an order is in it.
_TELLTALE = re2.compile(
    r"(?i)snoitcurtsni|tpmorp|selur|erongi|dragersid|laever|vafgehpgvba|cebzcg|ehyrf|vtaber|qvfertneq|erirny|flfgrz"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class NormalizedQuestion:
    """A text without invisible characters, and each form of it worth checking."""

    text: str
    forms: tuple[tuple[Disguise, str], ...]


def normalize_question(text: str) -> NormalizedQuestion:
    """Strip invisible characters from a text and list the possible disguises of an order in it."""
    cut = make_storable(text[:SCAN_LIMIT])
    tags = read_tag_letters(cut)
    visible = strip_invisible(cut)
    plain = _LONG_RUN.sub(lambda run: run[1] * 4, visible)
    forms: list[tuple[Disguise, str]] = [("plain", plain)]
    if tags:
        forms.append(("tags", tags))
    forms += _undo_disguises(plain, spaced_out=cut)
    forms += _decode_text(plain)
    return NormalizedQuestion(text=visible, forms=tuple(forms))


def strip_invisible(text: str) -> str:
    """Return the text in compatibility form, without format and control characters, its spaces collapsed."""
    lines = text[:SCAN_LIMIT].replace("\r\n", "\n").replace("\r", "\n")
    folded = lines if lines.isascii() else unicodedata.normalize("NFKC", lines)[:SCAN_LIMIT]
    kept = (
        folded
        if folded.isascii() and folded.replace("\n", "").isprintable()
        else "".join(map(_replace_invisible, folded))
    )
    return str(_BLANK_LINES.sub("\n\n", _SPACES.sub(" ", kept))).strip()


def strip_invisible_line(line: str) -> str:
    """Return a line without invisible characters, and with mixed alphabets in Latin letters."""
    if line.isascii():
        return line
    visible = str(_UNSEEN.sub("", unicodedata.normalize("NFKC", line)))
    return _strip_accents(visible).translate(_LOOKALIKES) if _MIXED.search(visible) is not None else visible


def may_hide(text: str) -> bool:
    """Whether a text may hide something, so its lines must be searched for hidden forms; few texts may."""
    return _HIDING.search(text) is not None


def find_hidden_text(line: str) -> Iterator[str]:
    """Yield the hidden text of a line: invisible letters, encoded text, letters set apart."""
    if tags := read_tag_letters(line):
        yield tags
    if _SPACED.search(line) is not None:
        yield _join_spaced_letters(_WORD_GAPS.sub("\n\n", line))
    yield from (text for disguise, text in _decode_text(line) if disguise != "parts")


def read_tag_letters(text: str) -> str:
    """Return the text in the invisible letters of the tag block, except in flags."""
    if text.isascii():
        return ""
    letters = "".join(chr(ord(char) - 0xE0000) for char in text if 0xE0020 <= ord(char) <= 0xE007E)
    return letters if len(letters) > _MIN_TAGS else ""


def _replace_invisible(char: str) -> str:
    if char == "\n":
        return char
    category = unicodedata.category(char)
    if category in {"Cf", "Cn", "Co", "Cs"}:
        return ""
    return " " if category in {"Cc", "Zl", "Zp", "Zs"} else char


def _undo_disguises(plain: str, *, spaced_out: str) -> list[tuple[Disguise, str]]:
    folded = _strip_accents(plain).translate(_LOOKALIKES)
    # Two spaces end a word that is written "l i k e  t h i s"; they must be seen before they are collapsed.
    words = _WORD_GAPS.sub("\n\n", spaced_out) if "  " in spaced_out else folded
    candidates: list[tuple[Disguise, str]] = [
        ("homoglyphs", folded),
        ("spaced", _join_spaced_letters(words)),
        ("spaced", str(_JOINED.sub(lambda run: run[0][::2], folded))),
        ("leet", folded.translate(_LEET)),
    ]
    different: dict[str, Disguise] = {}
    for name, form in candidates:
        if form != plain:
            different.setdefault(form, name)
    return [(name, form) for form, name in different.items()]


def _join_spaced_letters(words: str) -> str:
    """Join words whose letters are spaced out; empty if there are none."""
    if _SPACED.search(words) is None:
        return ""
    closed = _SPACED.sub(lambda run: f" {_GAPS.sub('', run[0])} ", words)
    return strip_invisible(closed).replace("\n", " ")


def _strip_accents(text: str) -> str:
    if text.isascii():
        return text
    return "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))


def _decode_text(plain: str) -> list[tuple[Disguise, str]]:
    found = [(disguise, text) for disguise, data in decode_spans(plain) for text in _decode_if_readable(data)]
    if _ESCAPES.search(plain) is not None:
        found.append(("escaped", strip_invisible(unescape(plain))))
    if _TELLTALE.search(plain) is not None:
        found += [("reversed", plain[::-1]), ("rot13", codecs.encode(plain, "rot13"))]
    lines = plain.split("\n")
    if len(lines) >= _MIN_LINES and len(plain.split()) < 2 * len(lines):
        found.append(("parts", " ".join(lines)))
    if len(parts := _QUOTES.findall(plain)) > 1:
        found += [("parts", " ".join(parts)), ("parts", "".join(parts))]
    return found


def decode_spans(text: str) -> Iterator[tuple[Disguise, bytes]]:
    """Decode the longest runs of a text that could be base64, base32 or character codes."""
    for disguise, pattern, decode in _CODES:
        for span in heapq.nlargest(_MAX_DECODED_SPANS, pattern.findall(text), key=len):
            with suppress(binascii.Error):  # identifiers and words in capitals are no code
                once = decode(span)
                yield disguise, once
                if once.isascii() and _BASE64.fullmatch(once.decode("ascii")) is not None:
                    yield disguise, _decode_base64(once.decode("ascii"))


def unescape(text: str) -> str:
    """Decode percent signs, entities and backslashes that encode letters."""
    letters = _BACKSLASHES.sub(lambda code: chr(int(code[1] or code[2], 16)), html.unescape(unquote(text)))
    return make_storable(letters)


def _decode_if_readable(data: bytes) -> list[str]:
    """Decode the bytes if the result is readable; identifiers decode to noise."""
    text = data.decode("ascii", "replace")
    letters = sum(char.isalpha() or char == " " for char in text)
    return [text] if text.isascii() and text and letters >= 0.8 * len(text) else []
