"""The methods that let a message grow: chat.startStream, appendStream, stopStream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.fakes.loopback.wire import JSON
from tests.fakes.slack.arguments import Args
from tests.fakes.slack.blocks import check_blocks, numbered
from tests.fakes.slack.chat import MAX_MARKDOWN, writable
from tests.fakes.slack.errors import SlackError
from tests.fakes.slack.messages import Message
from tests.fakes.slack.workspace import BOT_ID, BOT_USER, TEAM, Workspace

TASK_STATES = {"pending", "in_progress", "complete", "error"}
SESSION_STATES = {"processing", "active", "suspended", "closed"}


@dataclass
class StreamRules:
    """How the workspace treats streams: `refusal` is the error of all three methods, None if streams are on."""

    refusal: str | None = None
    lifetime: float | None = 300.0  # seconds after the start, whatever was sent in between
    idle: float | None = None  # seconds after the last append


class Streams:
    """The three methods over the messages of a workspace."""

    def __init__(self, workspace: Workspace, rules: StreamRules) -> None:
        self._workspace = workspace
        self._rules = rules
        self._last_write: dict[str, float] = {}

    def start(self, args: Args) -> JSON:
        """Begin a message that grows."""
        self._check_offered()
        channel = writable(self._workspace, args.required("channel"))
        thread_ts = args.required("thread_ts")
        if channel.kind != "im":
            for name in ("recipient_team_id", "recipient_user_id"):
                if not args.text(name):
                    raise SlackError(f"missing_{name}")
        pieces = _pieces(args)
        now = self._workspace.clock.now()
        message = Message(
            ts=self._workspace.next_ts(),
            channel=channel.id,
            user=BOT_USER,
            team=TEAM,
            bot_id=BOT_ID,
            thread_ts=thread_ts,
            streaming_since=now,
            text_shows=True,
        )
        self._write(message, pieces)
        self._workspace.post(message)
        return {"channel": channel.id, "ts": message.ts}

    def append(self, args: Args) -> JSON:
        """Let a message grow by some text, tasks or blocks."""
        self._check_offered()
        message = self._open(args, stopped="stopped_by_user")
        pieces = _pieces(args)
        if not pieces:
            raise SlackError("no_text")
        self._write(message, pieces)
        message.note_version()
        self._workspace.touch()
        return {"channel": message.channel, "ts": message.ts}

    def stop(self, args: Args) -> JSON:
        """Write the last of it and close the message."""
        self._check_offered()
        message = self._open(args, stopped="message_not_in_streaming_state")
        pieces = _pieces(args)
        blocks = args.items("blocks", refusal="invalid_blocks_format") or []
        check_blocks(blocks)
        session = args.optional("session_status")
        if session and session not in SESSION_STATES:
            raise SlackError("invalid_arguments")
        before = self._workspace.wire(message)
        self._write(message, pieces)
        message.blocks += numbered(blocks)
        message.streaming_since = None
        if session:
            self._workspace.sessions[message.channel, message.root] = session
        self._workspace.changed(message, before)
        return {"channel": message.channel, "ts": message.ts, "message": message.wire()}

    def expire(self, message: Message) -> None:
        """Close a stream as Slack does when it has been open for too long."""
        message.streaming_since = None
        self._workspace.touch()

    def sweep(self) -> None:
        """Close every stream whose time is over."""
        for channel in self._workspace.channels:
            for message in self._workspace.all(channel):
                if self._is_over(message):
                    self.expire(message)

    def _check_offered(self) -> None:
        if self._rules.refusal:
            raise SlackError(self._rules.refusal)

    def _open(self, args: Args, *, stopped: str) -> Message:
        channel = self._workspace.channel(args.required("channel"))
        message = self._workspace.message(channel.id, args.required("ts"))
        if message.bot_id != BOT_ID:
            raise SlackError("message_not_owned_by_app")
        if message.stopped_by_user:
            raise SlackError(stopped)
        if self._is_over(message):
            self.expire(message)
        if message.streaming_since is None:
            raise SlackError("message_not_in_streaming_state")
        return message

    def _is_over(self, message: Message) -> bool:
        if message.streaming_since is None:
            return False
        now, rules = self._workspace.clock.now(), self._rules
        age, silence = now - message.streaming_since, now - self._last_write[message.ts]
        return (rules.lifetime is not None and age >= rules.lifetime) or (
            rules.idle is not None and silence >= rules.idle
        )

    def _write(self, message: Message, pieces: list[JSON]) -> None:
        self._last_write[message.ts] = self._workspace.clock.now()
        message.appends += 1
        for piece in pieces:
            match piece["type"]:
                case "markdown_text":
                    message.text += piece["text"]
                case "task_update":
                    message.tasks[piece["id"]] = message.tasks.get(piece["id"], {}) | piece


def _pieces(args: Args) -> list[JSON]:
    pieces = args.items("chunks", refusal="invalid_chunks") or []
    for piece in pieces:
        _check_piece(piece)
    if sum(len(piece["text"]) for piece in pieces if piece["type"] == "markdown_text") > MAX_MARKDOWN:
        raise SlackError("msg_too_long")
    return pieces


def _check_piece(piece: JSON) -> None:
    def says(name: str) -> bool:
        value: Any = piece.get(name)
        return isinstance(value, str) and bool(value)

    match piece.get("type"):
        case "markdown_text":
            good = says("text")
        case "task_update":
            good = says("id") and says("title") and piece.get("status") in TASK_STATES
            good = good and all(map(_is_source, piece.get("sources", [])))
        case _:
            good = False
    if not good:
        raise SlackError("invalid_chunks")


def _is_source(element: JSON) -> bool:
    """Whether an element is one of the type `url`, the only one that a step takes."""
    is_address = str(element.get("url", "")).startswith(("https://", "http://"))
    return element.get("type") == "url" and is_address and bool(element.get("text"))
