"""Markdown on a terminal, with colours and layout, and without terminal control sequences."""

from __future__ import annotations

from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Markdown, MarkdownElement
from rich.segment import Segment
from rich.syntax import Syntax

from bot.adapters.terminal.output import CODE_THEME
from bot.markdown import replace_control_characters


class CodeExcerpt(CodeBlock):
    """Code between two lines of prose, without rich's wide margins."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        yield Syntax(code, self.lexer_name, theme=self.theme, word_wrap=True, padding=(0, 2))


class AnswerMarkdown(Markdown):
    """Markdown in rich's style, except the excerpts."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "fence": CodeExcerpt,
        "code_block": CodeExcerpt,
    }


class SafeMarkdown:
    """Markdown without links or terminal control sequences, whatever the text contains."""

    def __init__(self, text: str) -> None:
        self._markdown = AnswerMarkdown(replace_control_characters(text), hyperlinks=False, code_theme=CODE_THEME)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # Cleaned again after parsing: an entity such as `&#x202e;` becomes its character only there.
        for segment in console.render(self._markdown, options):
            yield segment if segment.control else Segment(replace_control_characters(segment.text), segment.style)
