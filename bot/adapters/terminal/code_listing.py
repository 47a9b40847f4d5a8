"""Places in the code as a list: highlighted below each other on a terminal, a line each everywhere else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

    from bot.adapters.terminal.output import CodeLine

CODE_THEME = "ansi_dark"  # the colours that the person chose for the terminal, light or dark


def format_code_lines(rows: Sequence[CodeLine], console: Console) -> str:
    """Write a list as it is to be printed on a console, with its colours if it is a terminal that has any."""
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
