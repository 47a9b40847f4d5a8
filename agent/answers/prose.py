"""Turns the markup of documentation comments into sentences that people read."""

from __future__ import annotations

import re

_LONGEST = 1_000  # characters; a sentence is a fraction of it
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r":(?:[\w-]+:)?[\w-]+:`([^`<>]{1,120}?)\s*<[^`<>]{1,200}>`"), r"\1"),  # :ref:`text <target>`
    (re.compile(r":(?:[\w-]+:)?[\w-]+:`~(?:[\w]+\.)*([\w]+(?:\(\))?)`"), r"\1"),  # :class:`~package.Name`
    (re.compile(r":(?:[\w-]+:)?[\w-]+:`[.!]?([^`]{1,160})`"), r"\1"),
    (re.compile(r"`([^`<>]{1,120}?)\s*<[^`<>]{1,200}>`__?"), r"\1"),  # `text <address>`_
    (re.compile(r"\{@(?:link|linkplain|code|literal)\s+(?:[^}|]{1,120}\|)?\s*([^}|]{1,120}?)\s*\}"), r"\1"),
    (re.compile(r"<see\s+cref=\"(?:\w:)?([^\"]{1,120})\"\s*/>"), r"\1"),
    (re.compile(r"(?<![\w\]])!?\[`?([^\]`]{1,120})`?\](?:\([^)\s]{1,300}\)|\[[^\]]{0,120}\])?"), r"\1"),
    (re.compile(r"</?(?:p|b|i|em|strong|code|tt|pre|br|a|ul|li|c|para|summary|remarks)(?:\s[^<>]{0,200})?/?>"), ""),
    (re.compile(r"`{1,2}([^`]{1,160})`{1,2}_{0,2}"), r"\1"),
    (re.compile(r"(?<![\w*])\*{1,2}([^*\s](?:[^*]{0,160}[^*\s])?)\*{1,2}(?![\w*])"), r"\1"),
)


def strip_doc_markup(text: str) -> str:
    """Take the markup out of a sentence: roles, links, tags and quoting marks; the words stay."""
    text = text[:_LONGEST]
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())
