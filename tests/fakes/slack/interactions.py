"""Hands out a trigger for each interaction, and a response URL for five answers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from aiohttp import web

from tests.fakes.loopback.wire import JSON
from tests.fakes.slack.arguments import Args, read_arguments
from tests.fakes.slack.chat import content
from tests.fakes.slack.errors import SlackError
from tests.fakes.slack.messages import Message
from tests.fakes.slack.workspace import BOT_ID, BOT_USER, TEAM, Workspace

RESPONSE_LIFETIME, MAX_RESPONSES = 1800.0, 5


class Tickets:
    """Triggers, which come with each interaction."""

    def __init__(self) -> None:
        self._given = count(1)

    def give(self) -> str:
        """Make a trigger."""
        return f"{next(self._given)}.trigger"


@dataclass(kw_only=True, slots=True)
class _Line:
    channel: str
    user: str
    source: Message | None
    opened: float
    uses: int = 0


class Responses:
    """The response URLs, and the messages that come through them."""

    def __init__(self, workspace: Workspace) -> None:
        self.base_url = ""
        self._workspace = workspace
        self._lines: dict[str, _Line] = {}

    def open(self, channel: str, user: str, source: Message | None = None) -> str:
        """Make a URL for answers to a person in a channel; `source` is the message that they used."""
        key = f"R{len(self._lines) + 1:04d}"
        opened = self._workspace.clock.now()
        self._lines[key] = _Line(channel=channel, user=user, source=source, opened=opened)
        return f"{self.base_url}/response/{key}"

    async def receive(self, request: web.Request) -> web.Response:
        """Take an answer."""
        line = self._lines.get(request.match_info["line"])
        if line is None or self._workspace.clock.now() - line.opened > RESPONSE_LIFETIME:
            return web.json_response({"ok": False, "error": "expired_url"}, status=404)
        if line.uses >= MAX_RESPONSES:
            return web.json_response({"ok": False, "error": "used_url"}, status=404)
        try:
            self.answer(line.channel, line.user, (await read_arguments(request, "response_url"))[0], line.source)
        except SlackError as error:
            return web.json_response(error.body, status=400)
        line.uses += 1
        return web.json_response({"ok": True})

    def answer(self, channel: str, user: str, body: JSON, source: Message | None = None) -> None:
        """Show an answer: to the person alone, in the channel, or in place of the message that they used."""
        args = Args(body)
        fields = content(args, most_text=None)
        thread_ts = args.optional("thread_ts")
        message = Message(
            ts=self._workspace.next_ts(),
            channel=channel,
            user=BOT_USER,
            team=TEAM,
            bot_id=BOT_ID,
            thread_ts=thread_ts,
            **fields,
        )
        if args.text("response_type", "ephemeral") == "in_channel":
            self._workspace.post(message)
        else:
            message.for_user = user
            self._workspace.whisper(message)
