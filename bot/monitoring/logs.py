"""Logs to standard error as text or JSON: each line names its turn, and secrets are masked."""

from __future__ import annotations

import json
import logging
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from bot.markdown.formatting import replace_control_characters

LogFormat = Literal["human", "json"]
Mask = Callable[[str], str]

_MAX_HELD = 1_000  # records that wait to be written
OURS = ("bot", "agent", "indexer")


@dataclass(frozen=True, kw_only=True, slots=True)
class LoggedTurn:
    """The current turn: its run, and its conversation."""

    run: str
    conversation: str


TURN: ContextVar[LoggedTurn | None] = ContextVar("citebot_turn", default=None)


@contextmanager
def log_turn(run: str, conversation: str) -> Iterator[None]:
    """Add the names of a turn to all log lines within the context, including tasks started in it."""
    token = TURN.set(LoggedTurn(run=run, conversation=conversation))
    try:
        yield
    finally:
        TURN.reset(token)


class _Masking(logging.Formatter):
    """Keeps secrets and control characters out of both formats."""

    def __init__(self, mask: Mask) -> None:
        super().__init__()
        self._mask = mask

    def safe(self, text: str) -> str:
        return replace_control_characters(self._mask(text))

    def traceback(self, record: logging.LogRecord) -> str:
        return self.safe(self.formatException(record.exc_info)) if record.exc_info else ""


class HumanFormatter(_Masking):
    """`WARNING bot.storage.inbox: what happened  (run 1f2e3d4c of slack:T:C:1)`; further lines are set in."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record as a line, with its traceback below."""
        about = TURN.get()
        text = self.safe(record.getMessage()).replace("\n", "\n  ")
        whose = f"  (run {about.run[:8]} of {self.safe(about.conversation)})" if about else ""
        line = f"{record.levelname} {record.name}: {text}{whose}"
        return "\n".join(filter(None, (line, self.traceback(record))))


class JsonFormatter(_Masking):
    """One object per line: time, level, logger, message; run and conversation in a turn; traceback after an error."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as an object, escaped to ASCII."""
        about = TURN.get()
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self.safe(record.getMessage()),
            "run": about.run if about else "",
            "conversation": self.safe(about.conversation) if about else "",
            "traceback": self.traceback(record),
        }
        return json.dumps({name: value for name, value in fields.items() if value or name == "message"})


def log_to_stderr(level: str, log_format: LogFormat, mask: Mask) -> None:
    """Log our own records from a level on, and the libraries' warnings."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(mask) if log_format == "json" else HumanFormatter(mask))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.captureWarnings(capture=log_format == "json")  # Python's own would be lines that are no objects
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # warns of each attempt while Postgres is away
    for package in OURS:
        logging.getLogger(package).setLevel(level.upper())


@contextmanager
def hold_log() -> Iterator[None]:
    """Delay log lines while something is drawn on the terminal, until the context ends."""
    root, held = logging.getLogger(), _HeldRecords()
    before, root.handlers = root.handlers, [held]
    try:
        yield
    finally:
        root.handlers = before
        for record in held.records:
            root.handle(record)


class _HeldRecords(logging.Handler):
    """Keeps records, the newest of them."""

    def __init__(self) -> None:
        super().__init__()
        self.records: deque[logging.LogRecord] = deque(maxlen=_MAX_HELD)

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def is_json_logging() -> bool:
    """Whether standard error is only for JSON lines."""
    return any(isinstance(handler.formatter, JsonFormatter) for handler in logging.getLogger().handlers)


def log_always(text: str, level: int = logging.INFO) -> None:
    """Log a message regardless of the level."""
    logger = logging.getLogger(OURS[0])
    logger.handle(logger.makeRecord(logger.name, level, __file__, 0, text, (), None))
