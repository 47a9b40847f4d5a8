"""Brings a question into the forms in which an injection could hide: plain, folded, spaced out, encoded."""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

# Everything after this is cut before any pattern looks at it; a compatibility form may be 18 times its source.
SCAN_LIMIT = 6000
_MAX_DECODED_SPANS = 8

Disguise = Literal["plain", "homoglyphs", "spaced", "leet", "base64", "hex", "tags"]

# Letters of other alphabets that are drawn like a Latin one.
_LOOKALIKES = str.maketrans(
    "абвгеёікмнорстухѕјԁһԛԝցοαβεικνρτυχγηωАВЕЅІЈКМНОРСТУХΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "abbreeikmhopctyxsjdhqwgoabeikvptuxynwABESIJKMHOPCTYXABEZHIKMNOPTYX",
)
_LEET = str.maketrans("013457@$!", "oieastasi")
_SPACED = re.compile(r"(?<!\S)(?:\S[ .\-_*]){2,80}\S(?!\S)")
_WORD_GAPS = re.compile(r"[^\S\n]{2,}")
_LONG_RUN = re.compile(r"(.)\1{15,}", re.DOTALL)
_SPACES = re.compile(r"[^\S\n]+")
_BLANK_LINES = re.compile(r"\n\s*\n\s*\n+")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{16,2000}={0,2}")
_HEX = re.compile(r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2} ?){12,1000}(?![0-9A-Fa-f])")
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True, kw_only=True, slots=True)
class Normalised:
    """A question without what cannot be seen, and each form of it that is worth a look."""

    text: str
    forms: tuple[tuple[Disguise, str], ...]
    has_bidi_controls: bool
    has_tag_letters: bool


def normalise(question: str) -> Normalised:
    """Strip invisible characters from a question and list the disguises that an injection in it could wear."""
    cut = question.encode("utf-8", "replace").decode("utf-8")[:SCAN_LIMIT]
    tags = "".join(chr(ord(char) - 0xE0000) for char in cut if 0xE0020 <= ord(char) <= 0xE007E)
    text = visible(cut)
    plain = _LONG_RUN.sub(lambda run: run[1] * 4, text)
    forms: list[tuple[Disguise, str]] = [("plain", plain)]
    if tags:
        forms.append(("tags", tags))
    forms += _disguised(plain, spaced_out=cut)
    forms += _decoded(plain)
    return Normalised(
        text=text, forms=tuple(forms), has_bidi_controls=not _BIDI.isdisjoint(cut), has_tag_letters=bool(tags)
    )


def visible(text: str) -> str:
    """Return the text in compatibility form, without format and control characters, its spaces collapsed."""
    folded = unicodedata.normalize("NFKC", text.replace("\r\n", "\n").replace("\r", "\n"))[:SCAN_LIMIT]
    kept = "".join(_seen(char) for char in folded)
    lines = _SPACES.sub(" ", kept)
    return _BLANK_LINES.sub("\n\n", lines).strip()


def _seen(char: str) -> str:
    if char == "\n":
        return char
    category = unicodedata.category(char)
    if category in {"Cf", "Cn", "Co", "Cs"}:
        return ""
    return " " if category in {"Cc", "Zl", "Zp", "Zs"} else char


def _disguised(plain: str, *, spaced_out: str) -> list[tuple[Disguise, str]]:
    folded = _without_accents(plain).translate(_LOOKALIKES)
    # Two spaces end a word that is written "l i k e  t h i s"; they have to be seen before they are collapsed.
    words = _WORD_GAPS.sub("\n", spaced_out) if "  " in spaced_out else folded
    candidates: list[tuple[Disguise, str]] = [
        ("homoglyphs", folded),
        ("spaced", visible(_SPACED.sub(lambda run: re.sub(r"[ .\-_*]", "", run[0]), words)).replace("\n", " ")),
        ("leet", folded.translate(_LEET)),
    ]
    seen = {plain}
    different: list[tuple[Disguise, str]] = []
    for name, form in candidates:
        if form not in seen:
            seen.add(form)
            different.append((name, form))
    return different


def _without_accents(text: str) -> str:
    return "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))


def _decoded(plain: str) -> list[tuple[Disguise, str]]:
    found: list[tuple[Disguise, str]] = []
    for span in list(_BASE64.finditer(plain))[:_MAX_DECODED_SPANS]:
        found += [("base64", text) for text in _readable(_from_base64(span[0]))]
    for span in list(_HEX.finditer(plain))[:_MAX_DECODED_SPANS]:
        found += [("hex", text) for text in _readable(bytes.fromhex(span[0]))]
    return found


def _from_base64(span: str) -> bytes:
    try:
        return base64.b64decode(span + "=" * (-len(span) % 4))
    except binascii.Error:  # no base64 after all: there is nothing to look into
        return b""


def _readable(data: bytes) -> list[str]:
    """Return the bytes as text if a person could read them; identifiers decode to noise."""
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError:
        return []
    letters = sum(char.isalpha() or char == " " for char in text)
    return [text] if text and letters >= 0.8 * len(text) else []
