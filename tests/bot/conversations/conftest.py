"""People in Slack and Discord who have goal runs begin: a parser with a fault, and a Gemini with a script."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import SecretStr

from agent.llm.models import open_models
from agent.persistence.checkpointer import open_saver
from bot.access import AccessPolicy
from bot.conversations.assembly import ChatPolicy
from tests.agent.goals.conftest import PARSER, GoalBench
from tests.bot.discord_worlds import DiscordWorld
from tests.bot.slack_worlds import SlackWorld
from tests.bot.worlds import HOSTS
from tests.fakes.answerer import FakeRepositories
from tests.fakes.discord import FakeDiscord
from tests.fakes.gemini import FakeGemini
from tests.fakes.slack import FakeSlack
from tests.fakes.unconfined import FolderCopies
from tests.waiting import expect

GLANCE = 0.05  # seconds of the platform's clock between two looks, by which replies grow


@dataclass
class GoalWorld:
    """A platform on which Ann may have goal runs begin and Bob may not, and what they run with."""

    chat: SlackWorld | DiscordWorld
    bench: GoalBench
    gemini: FakeGemini

    def allow(self, *people: str, mask: Callable[[str], str] = str) -> None:
        """Name those who may have goal runs begin, from the next beginning on."""
        run = tuple(self.chat.people[name] for name in people)
        self.chat.policy = ChatPolicy(hosts=HOSTS, access=AccessPolicy(run=run), mask=mask)

    def read_files(self) -> list[str]:
        """What was attached, oldest first."""
        if isinstance(self.chat, SlackWorld):
            stored = self.chat.fake.files.stored.values()
            return [(each.content or b"").decode() for each in stored if each.shared]
        return [content.decode() for content in self.chat.fake.world.uploads.values()]

    async def wait(self, seen: Callable[[list[str]], bool]) -> list[str]:
        """Wait until what citebot says is as expected, and return it."""
        try:
            async with expect("seen(self.read())"):
                while not seen(self.read()):  # a platform tells nobody that it shows something else
                    await self.chat.pass_time(GLANCE)
        except TimeoutError as error:
            raise AssertionError("\n=====\n".join(self.read())) from error
        return self.read()

    def read(self) -> list[str]:
        """What citebot's messages show, oldest first; in Slack a file is a message of its own, without a text."""
        return list(filter(None, self.chat.said()))

    async def see(self, *texts: str) -> list[str]:
        """Wait until citebot's messages are as many as the texts, and each contains its own."""
        return await self.wait(lambda said: len(said) == len(texts) and all(map(str.__contains__, said, texts)))

    async def reply(self, text: str, *, thread: str, author: str = "ann") -> None:
        """Write to citebot about what it shows, once its turn is over: an earlier word decides nothing."""
        await self.wait(lambda _: not self.chat.conversations.turns.list_active())
        await self.chat.mention(text, author=author, thread=thread)

    async def press(self, label: str, person: str = "ann") -> str:
        """Press the button of a label under the newest message that has it; return what a person but Ann is told."""
        return await self.chat.choose(label, author=person)

    async def see_files(self) -> list[str]:
        """Wait until something was attached: in Slack that follows the message."""
        await self.wait(lambda _: bool(self.read_files()))
        return self.read_files()

    @property
    def is_quiet(self) -> bool:
        """Whether nothing runs and nothing is left of what did."""
        return not self.bench.sandbox.running and not self.bench.copies.open_now


OpenGoals = Callable[[str], AbstractAsyncContextManager[GoalWorld]]


@pytest.fixture
def open_goals(tmp_path: Path, gemini: FakeGemini) -> OpenGoals:
    """Return what opens a world in which citebot has begun."""

    @asynccontextmanager
    async def open_world(platform: str) -> AsyncIterator[GoalWorld]:
        copies = tmp_path / "copies"
        copies.mkdir()
        async with (
            open_saver(tmp_path / "conversations.db") as saver,
            open_models(google_api_key=SecretStr("k"), google_base_url=gemini.url) as models,
            AsyncExitStack() as stack,
        ):
            inbox = tmp_path / "inbox.sqlite"
            chat: SlackWorld | DiscordWorld = (
                SlackWorld(await stack.enter_async_context(FakeSlack()), inbox)
                if platform == "slack"
                else DiscordWorld(await stack.enter_async_context(FakeDiscord()), inbox)
            )
            bench = GoalBench(
                saver=saver, models=models, gemini=gemini, copies=FolderCopies(PARSER, copies), files=dict(PARSER)
            )
            chat.repositories = FakeRepositories("shop")
            chat.goals = bench.open_agent()
            world = GoalWorld(chat=chat, bench=bench, gemini=gemini)
            world.allow("ann")
            await chat.begin()
            yield world
            await chat.end()

    return open_world
