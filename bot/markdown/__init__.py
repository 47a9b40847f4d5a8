"""Answers and citations as text that is safe to show, on a terminal and on chat platforms: pure functions."""

from bot.markdown.formatting import (
    find_link_target,
    format_cited_place,
    format_dollars,
    format_footnote,
    format_location,
    replace_control_characters,
    to_one_line,
)

__all__ = [
    "find_link_target",
    "format_cited_place",
    "format_dollars",
    "format_footnote",
    "format_location",
    "replace_control_characters",
    "to_one_line",
]
