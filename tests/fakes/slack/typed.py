"""Converts typed words as Slack does: escapes and links."""

from __future__ import annotations

import re

# Mentions and control sequences that a test writes out, code, links, and names that look like web addresses.
_PIECES = re.compile(
    r"(?P<token><[@#!][^<>\s]+>)"
    r"|(?P<code>```.*?```|`[^`\n]+`)"
    r"|(?P<link>https?://[^\s<>|]+)"
    r"|(?P<name>(?<![\w/.@-])[\w-]+\.(?:py|md|rs|sh|io|com|cc|pl)(?![\w/.-]))",
    re.DOTALL,
)


def typed(text: str) -> str:
    """Return the wire form: `& < >` escaped, links in angle brackets, `setup.py` taken for a web address."""
    written, position = "", 0
    for match in _PIECES.finditer(text):
        written += escaped(text[position : match.start()]) + _piece(match)
        position = match.end()
    return written + escaped(text[position:])


def escaped(text: str) -> str:
    """Escape the three characters that Slack escapes."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _piece(match: re.Match[str]) -> str:
    piece = match[0]
    if match["token"]:
        return piece
    if match["code"]:
        return escaped(piece)
    return f"<{escaped(piece)}>" if match["link"] else f"<http://{piece}|{piece}>"
