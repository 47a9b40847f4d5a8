"""Shows progress, growing text, answers and lists of code on a terminal, and plain text if there is none."""

from __future__ import annotations

import base64
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Self, TextIO

from rich.console import Console
from rich.control import Control
from rich.segment import ControlType
from rich.text import Text
from rich.theme import Theme

from agent.text.citation_markers import format_marker
from bot.adapters.terminal.output import CODE_THEME, CodeLine, format_answer, format_author
from bot.markdown import find_link_target, format_cited_place, replace_control_characters
from bot.monitoring.logs import hold_log

if TYPE_CHECKING:
    from agent import AgentEvent, Answer
    from bot.adapters.terminal.progress import IndexingBar
    from bot.adapters.terminal.trace import RunTrace
    from indexer import Progress

_MAX_COPY = 74_000  # characters in base64; many terminals take no more
# rich puts code in a line on black, which is a hole in a light window.
_STYLES = {"markdown.code": "bold cyan"}


class Terminal:
    """Standard output for answers and standard error for everything else."""

    def __init__(self, *, out: Console, err: Console) -> None:
        self.out = out
        self.err = err

    @classmethod
    def standard(cls) -> Self:
        """Show on this process's standard output and standard error."""

        # Text of a repository is never markup, and no name in it is to be coloured as if it meant something.
        def console(stream: TextIO) -> Console:
            return Console(file=stream, markup=False, emoji=False, highlight=False, theme=Theme(_STYLES))

        return cls(out=console(sys.stdout), err=console(sys.stderr))

    def note(self, text: str) -> None:
        """Print a note on standard error."""
        self.err.print(replace_control_characters(text), soft_wrap=True)

    def write(self, text: str) -> None:
        """Print plain text on standard output."""
        self.out.print(replace_control_characters(text), soft_wrap=True)

    def format_code_lines(self, lines: Sequence[CodeLine]) -> str:
        """Write a list of places for standard output."""
        return format_code_lines(lines, self.out)

    def clear_line(self) -> None:
        """Clear the text typed before the prompt was ready; the prompt shows it again."""
        if self.out.is_terminal:
            self.out.control(Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2)))

    def copy(self, text: str) -> bool:
        """Copy text to the clipboard of the terminal; False if that certainly cannot work.

        The sequence is OSC 52, which terminals do not confirm.
        """
        content = base64.b64encode(text.encode()).decode()
        if not self.out.is_terminal or self.out.is_dumb_terminal or len(content) > _MAX_COPY:
            return False
        self.out.file.write(f"\x1b]52;c;{content}\x07")
        self.out.file.flush()
        return True

    def show_markdown(self, text: str) -> None:
        """Print our own Markdown, formatted on a terminal."""
        if not self.out.is_terminal:
            self.write(text)
            return
        from bot.adapters.terminal.safe_markdown import SafeMarkdown

        self.out.print(SafeMarkdown(text))

    def show(self, answer: Answer, root: Path | None = None) -> None:
        """Print an answer and its citations, linked to the web, or else to the files of a working tree at `root`."""
        if not self.out.is_terminal:
            self.write(format_answer(answer))
            return
        self.show_markdown(answer.text)
        self.out.print()
        for cited in answer.citations:
            target = find_link_target(cited, root)
            where = Text(format_cited_place(cited), style=f"link {target}" if target else "")
            line = Text.assemble((f" {format_marker(cited.mark)} ", "dim"), where)
            self.out.print(line, soft_wrap=True)
        if author := format_author(answer):
            self.out.print(Text(f"\n {author}", "dim"), soft_wrap=True)

    @contextmanager
    def show_indexing(self, *, patience: float) -> Iterator[Callable[[Progress], None]]:
        """Show a refresh, beginning after `patience` seconds; the callback may be called from any thread."""
        since = time.monotonic() + patience
        bars: list[IndexingBar] = []

        def advance(progress: Progress) -> None:
            if not bars:
                from bot.adapters.terminal.progress import IndexingBar  # nothing may must be done

                bars.append(IndexingBar(self.err, since))
            bars[0].advance(progress)

        with hold_log() if self.err.is_terminal else nullcontext():
            try:
                yield advance
            finally:
                for bar in bars:
                    bar.close()

    @contextmanager
    def watch(self, trace: RunTrace | None = None, root: Path | None = None) -> Iterator[Callable[[AgentEvent], None]]:
        """Trace a run, or draw it in a live region, which log lines would break.

        Places without a web address are linked to the files of a working tree at `root`.
        """
        if trace is not None:
            yield trace.take
        elif not self.err.is_terminal:
            yield lambda _: None
        else:
            from bot.adapters.terminal.progress import LiveAnswer

            draft = LiveAnswer(root)
            with hold_log(), draft.draw(self.err):
                yield draft.take


def format_code_lines(rows: Sequence[CodeLine], console: Console) -> str:
    """Write a list for a console, with colours if the terminal has any."""
    if not console.is_terminal:
        return "\n".join(map(str, rows))
    with console.capture() as captured:
        for row in rows:
            heading = Text.assemble((row.where, "bold"), *((f"  {note}", "dim") for note in row.notes if note))
            console.print(heading, soft_wrap=True)
            if row.code:
                from rich.syntax import Syntax

                text = Syntax("", Syntax.guess_lexer(row.path), theme=CODE_THEME).highlight(row.code)
                text.rstrip()
                console.print(Text("    ").append_text(text), soft_wrap=True)
    return captured.get().removesuffix("\n")
