"""Live displays for the terminal: an answer as it grows, and the progress bar of a refresh."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.segment import Segment
from rich.spinner import Spinner
from rich.text import Text

from agent import AgentEvent, Citation
from bot.adapters.terminal.safe_markdown import SafeMarkdown
from bot.markdown import find_link_target, format_cited_place, to_one_line
from bot.replies.answer_content import FoundPlaces, describe_stage
from indexer import Progress

_STAGES = {
    "listing": "Listing files",
    "parsing": "Reading code",
    "embedding": "Embedding",
    "writing": "Writing the index",
    "done": "Done",
}


class LiveAnswer:
    """The answer so far: a spinner with the present stage, and the last lines of the text.

    Before there is text, the first places found, linked to the web, or else to files of a tree at
    `root`.
    """

    def __init__(self, root: Path | None = None) -> None:
        self._spinner = Spinner("dots", text=Text("Thinking"))
        self._found = FoundPlaces()
        self._root = root
        self._text = ""

    def draw(self, console: Console) -> Live:
        """Draw this on a terminal while the context is open."""
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
        self._found.take(event)
        if stage := describe_stage(event):
            self._spinner.update(text=Text(stage))
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
        if not self._text:
            yield from map(self._format_place, self._found.citations[:room])
        yield self._spinner

    def _format_place(self, place: Citation) -> Text:
        target = find_link_target(place, self._root)
        name = to_one_line(format_cited_place(place))
        return Text(f"  {name}", style=f"link {target}" if target else "", no_wrap=True, overflow="ellipsis")


class IndexingBar:
    """A progress bar that appears at a time of the monotonic clock; one line if there is no terminal."""

    def __init__(self, console: Console, since: float) -> None:
        self._console = console
        self._from = since
        self._lock = threading.Lock()
        self._shown = False
        self._bar = Bar(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[count]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task("Indexing", total=None, count="")

    def advance(self, progress: Progress) -> None:
        """Show the progress of the refresh."""
        with self._lock:
            if not self._shown and time.monotonic() >= self._from:
                self._shown = True
                if self._console.is_terminal:
                    self._bar.start()
                else:
                    self._console.print("Indexing the repository ...")
        self._bar.tasks[self._task].total = progress.total or None  # without one, the bar moves to and fro
        count = f"{progress.done:,} of {progress.total:,} files" if progress.total else ""
        self._bar.update(self._task, description=_STAGES[progress.stage], completed=progress.done, count=count)

    def close(self) -> None:
        """Remove the bar."""
        with self._lock:
            if self._shown and self._console.is_terminal:
                self._bar.stop()
            self._shown = True  # a thread that was stopped may report once more
