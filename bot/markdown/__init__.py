"""Answers and citations as text that is safe to show, on a terminal and on chat platforms: pure functions."""

from bot.markdown.showing import footnote, link_target, one_line, place, visible

__all__ = ["footnote", "link_target", "one_line", "place", "visible"]
