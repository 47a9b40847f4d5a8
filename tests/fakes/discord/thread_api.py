"""The endpoint that starts a thread on a message."""

from __future__ import annotations

from tests.fakes.discord.checks import check_thread_name
from tests.fakes.discord.errors import DiscordError
from tests.fakes.discord.permissions import Permission
from tests.fakes.discord.requests import Ask, Endpoint
from tests.fakes.discord.threads import Threads
from tests.fakes.discord.world import World
from tests.fakes.loopback.wire import JSON


class ThreadApi:
    """Answers what concerns threads."""

    def __init__(self, world: World, threads: Threads) -> None:
        self._world = world
        self._threads = threads

    def endpoints(self) -> list[Endpoint]:
        """Everything that is answered here."""
        path = "/channels/{channel}/messages/{message}/threads"
        name = "start_thread_from_message"
        return [Endpoint(name=name, method="POST", path=path, answer=self.from_message, major=("channel",))]

    def from_message(self, ask: Ask) -> JSON:
        """Start a thread on a message."""
        channel = self._world.channel(ask.path["channel"])
        if channel.is_thread or channel.guild_id is None:
            raise DiscordError(50024)
        self._world.channel(channel.id, Permission.CREATE_PUBLIC_THREADS, Permission.READ_MESSAGE_HISTORY)
        message = self._world.message(channel.id, ask.path["message"])
        name, archive_after = check_thread_name(ask.fields.get("name")), _archive_after(ask.fields)
        bot = self._world.bot.id
        return self._threads.wire(self._threads.start_from(message, bot, name, archive_after=archive_after))


def _archive_after(body: JSON) -> int:
    return int(body.get("auto_archive_duration") or 1440)
