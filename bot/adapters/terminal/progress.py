"""What changes on a terminal while something goes on: an answer as it grows, and the bar of a refresh."""

from __future__ import annotations

import threading
import time

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.segment import Segment
from rich.spinner import Spinner
from rich.text import Text

from agent import AgentEvent
from bot.adapters.terminal.safe_markdown import SafeMarkdown
from bot.markdown import to_one_line
from indexer import Progress

_STAGES = {
    "listing": "Listing files",
    "parsing": "Reading code",
    "embedding": "Embedding",
    "writing": "Writing the index",
    "done": "Done",
}


class LiveAnswer:
    """The answer so far: a spinner with the present stage, and the last lines of the text."""

    def __init__(self) -> None:
        self._spinner = Spinner("dots", text=Text("Thinking"))
        self._text = ""

    def draw(self, console: Console) -> Live:
        """Draw this on a terminal for as long as the context is open, and take it away again."""
        return Live(
            self,
            console=console,
            refresh_per_second=10,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def take(self, event: AgentEvent) -> None:
        """Update the draft with an event."""
        if event.kind == "step_start":
            self._spinner.update(text=Text(to_one_line(str(event.payload["stage"]))))
        elif event.kind == "token":
            self._text += event.payload["text"]
        elif event.kind == "reset":
            self._text = event.payload["text"]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # Only what fits: a live region taller than the window cannot be taken back.
        room = max(1, options.size.height - 4)
        lines = console.render_lines(SafeMarkdown(self._text), options, pad=False) if self._text else []
        for line in lines[-room:]:
            yield from line
            yield Segment.line()
        yield self._spinner


class IndexingBar:
    """A progress bar that appears once its patience has run out; one line where there is no terminal."""

    def __init__(self, console: Console, patience: float) -> None:
        self._console = console
        self._from = time.monotonic() + patience
        self._lock = threading.Lock()
        self._shown = False
        self._bar = Bar(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task("Indexing", total=None)

    def advance(self, progress: Progress) -> None:
        """Show how far the refresh has come."""
        with self._lock:
            if not self._shown and time.monotonic() >= self._from:
                self._shown = True
                if self._console.is_terminal:
                    self._bar.start()
                else:
                    self._console.print("Indexing the repository ...")
        self._bar.update(
            self._task, description=_STAGES[progress.stage], completed=progress.done, total=progress.total or None
        )

    def close(self) -> None:
        """Take the bar away."""
        with self._lock:
            if self._shown and self._console.is_terminal:
                self._bar.stop()
            self._shown = True  # a thread that was stopped may report once more
