"""Earlier answers over a real index: given again at once to the same question, and never to anybody who may not see."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bot.access import AccessPolicy, AccessRule
from bot.app import TeamApp
from bot.clock import SystemClock
from bot.conversations.assembly import open_conversations
from bot.conversations.dispatcher import Conversations
from bot.messages import ButtonPress, IncomingMessage, MessageContent, Place
from bot.serving.service import make_chat_policy
from bot.settings import LivingTable, RepositoryTable, Settings
from bot.storage.database import open_database, open_postgres
from bot.storage.rate_limits import QuestionLimits
from bot.surfaces.ask_events import Answered, AskEvent, NotAnswered
from bot.surfaces.principals import Principal
from bot.surfaces.questions import Questions
from tests.bot.chat import message
from tests.fakes.gemini import FakeGemini, running_gemini, says
from tests.fakes.platform import ABLE, FakePlatform
from tests.fakes.postgres import make_database
from tests.fakes.repositories import GitRepo
from tests.fakes.watched import Unseen

CALLER = "from dates import parse_date\n\n\ndef load(row):\n    return parse_date(row)\n"
FILES = {
    "dates.py": "def parse_date(text):\n    return text.split('-')\n",
    "orders.py": CALLER,
    "README.md": "# Shop\n",
}
QUESTION = "who calls parse_date?"
MEMBERS = AccessPolicy(rules=(AccessRule(repositories=("shop",), people=("ann", "bob")),))


@dataclass
class Chat:
    """People who ask about a repository, each time in a thread of its own."""

    repo: GitRepo
    team: TeamApp
    conversations: Conversations
    platform: FakePlatform
    asked: int = 0

    async def ask(self, text: str = QUESTION, *, author: str = "ann", channel: str = "C", **fields: object) -> str:
        """Ask, and return what is shown at the end, with the line below it."""
        return await self.receive(self.write(text, author=author, channel=channel, **fields))

    def write(
        self, text: str = QUESTION, *, author: str = "ann", channel: str = "C", **fields: object
    ) -> IncomingMessage:
        self.asked += 1
        place = Place(platform="fake", workspace="W", channel=channel, thread=f"{self.asked}")
        return replace(
            message(text, id=f"{self.asked}", author=author, author_name=author.title()), place=place,
            **fields,  # type: ignore[arg-type]
        )  # fmt: skip

    async def receive(self, written: IncomingMessage) -> str:
        await self.conversations.receive(written)
        await self.wait(written)
        return f"{self.shown.text}\n{self.shown.footer}"

    async def wait(self, written: IncomingMessage) -> None:
        entry = await self.conversations.deps.inbox.find(written.key)
        assert entry is not None
        await self.conversations.turns.wait_for(entry.id)

    @property
    def shown(self) -> MessageContent:
        return list(self.platform.messages.values())[-1].content

    async def push(self, path: str, text: str) -> None:
        self.repo.write(path, text)
        self.repo.commit()
        await self.team.stock.library.refresh("shop")


OpenChat = Callable[..., AbstractAsyncContextManager[Chat]]


@pytest.fixture
def open_chat(tmp_path: Path) -> OpenChat:
    repo = GitRepo(tmp_path / "shop")
    for path, text in FILES.items():
        repo.write(path, text)
    repo.commit()

    @asynccontextmanager
    async def open_one(url: str = "", **changes: object) -> AsyncIterator[Chat]:
        table = RepositoryTable(path=repo.root, name="shop")
        settings = Settings.load().model_copy(update={"repositories": (table,), **changes})
        platform = FakePlatform(SystemClock(), ABLE)
        async with AsyncExitStack() as stack:
            team = await stack.enter_async_context(TeamApp.open(settings, tmp_path, Unseen()))
            store = open_postgres(url) if url else open_database(tmp_path / "inbox.sqlite")
            limits = QuestionLimits(per_minute=1_000, per_day=1_000)
            policy = make_chat_policy(settings, team, limits=limits)
            opening = open_conversations(
                team.agent, team.stock.library, store=store, policy=policy, refs=team.stock.library.refs
            )
            conversations = await stack.enter_async_context(opening)
            await stack.enter_async_context(conversations.open())
            await stack.enter_async_context(conversations.connect_platform("fake", platform))
            yield Chat(repo, team, conversations, platform)

    return open_one


@pytest.fixture
def gemini(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGemini]:
    monkeypatch.setenv("GOOGLE_API_KEY", "AIza-key")
    with running_gemini() as fake:
        monkeypatch.setenv("GOOGLE_API_BASE_URL", fake.url)
        fake.script = lambda _: says("It is called by `load` [E1].")
        yield fake


async def test_an_answer_by_a_model_is_given_again_without_a_call(open_chat: OpenChat, gemini: FakeGemini) -> None:
    async with open_chat() as chat:
        first = await chat.ask(channel="general")
        calls = len(gemini.received)
        again = await chat.ask("Can you show me the callers of `parse_date`, please?", author="bob", channel="general")
        assert len(gemini.received) == calls > 0
        assert again.split("\n")[0] == first.split("\n")[0]
        assert f"Asked by Ann just now, still true at `{chat.repo.sha()[:7]}`" in again
        assert next(one.label for one in chat.shown.buttons) == "Ask anew"

        await chat.push("more.py", "X = 1\n")
        moved = await chat.ask(author="carol")
        assert f"An earlier answer, still true at `{chat.repo.sha()[:7]}`" in moved  # asked in another channel
        assert len(gemini.received) == calls
        assert "earlier" not in await chat.ask("wer ruft parse_date auf?")  # which is answered in German
        assert len(gemini.received) > calls

        handle = list(chat.platform.messages.values())[-2].handle
        calls = len(gemini.received)
        await chat.conversations.handle_press(ButtonPress(handle=handle, action="again", author="bob"))
        entry = await chat.conversations.deps.inbox.find_by_reply(handle)
        assert entry is not None
        await chat.conversations.turns.wait_for(entry.id)
        assert len(gemini.received) > calls
        assert "still true" not in await chat.ask("anew: who calls parse_date?", channel="general")


@pytest.mark.parametrize("at", ["sqlite", pytest.param("postgres", marks=pytest.mark.needs("postgres"))])
async def test_only_what_is_true_by_now_is_given_again(at: str, open_chat: OpenChat) -> None:
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(make_database()) if at == "postgres" else ""
        chat = await stack.enter_async_context(open_chat(url))
        await chat.ask()
        await chat.ask("who calls load?")
        assert "Asked by Ann" in await chat.ask("who calls load?", author="bob")

        await chat.push("more.py", CALLER)  # a list has one more, though no line that is cited has changed
        told = await chat.ask()
        assert "2 calls" in told
        assert "still true" not in told
        assert "still true" not in await chat.ask("who calls load?")  # two of that name are defined by now
        assert "still true" in await chat.ask()
        await chat.push("dates.py", f"# Dates.\n{FILES['dates.py']}")
        assert "still true" not in await chat.ask()
        assert "still true" in await chat.ask()
        await chat.conversations.handle_press(
            ButtonPress(handle=list(chat.platform.messages.values())[-1].handle, action="bad", author="bob")
        )
        assert "still true" not in await chat.ask()


async def test_nothing_is_given_to_whoever_may_not_see_it_now(open_chat: OpenChat) -> None:
    async with open_chat(access=MEMBERS) as chat:
        await chat.ask()
        for channel, author in (("C", "carol"), ("D-carol", "carol")):
            said = await chat.ask(author=author, channel=channel, private=channel != "C")
            assert not re.search("load|Asked|true", said)
        reuse = chat.conversations.deps.reuse  # as if the choice of the repository had let her through
        assert reuse is not None
        asked = await reuse.read(QUESTION, ("shop",), None, None)
        assert asked is not None
        assert await reuse.find(asked, chat.write(author="carol")) is None
        assert await reuse.find(asked, chat.write(author="bob")) is not None
    lost = AccessPolicy(rules=(AccessRule(repositories=("shop",), people=("ann",)),))
    async with open_chat(access=lost) as chat:
        chat.asked = 100
        said = await chat.ask(author="bob")
        assert not re.search("load|Asked|true", said)
        assert "still true" in await chat.ask(author="ann")


async def test_who_asked_in_private_is_told_to_nobody_else(open_chat: OpenChat) -> None:
    async with open_chat() as chat:
        await chat.ask(channel="D-ann", private=True)
        assert "Asked by you just now" in await chat.ask(channel="D-ann", private=True)
        for channel in ("C", "D-bob"):
            said = await chat.ask(author="bob", channel=channel, private=channel != "C")
            assert "An earlier answer, still true at" in said
            assert not re.search("Ann|just now, still", said)
        assert "Asked by Bob just now" in await chat.ask(author="carol", channel="C")


async def test_a_question_with_more_than_its_text_is_answered_by_itself(open_chat: OpenChat) -> None:
    async with open_chat() as chat:
        await chat.ask()
        for told in (
            await chat.ask(quoted=("who calls load?",)),
            await chat.ask("who calls parse_date in orders.py?"),
            await chat.ask("who calls parse_date or load?"),
            await chat.ask("who does not call parse_date?"),
        ):
            assert "still true" not in told
        thread = chat.write("what is load?")
        await chat.receive(thread)
        follow = replace(chat.write(kind="follow_up", in_thread=True), place=thread.place)
        assert "still true" not in await chat.receive(follow)
    async with open_chat(living=LivingTable(reuse=False)) as chat:
        chat.asked = 100
        assert "still true" not in await chat.ask()


async def test_programs_get_what_the_chat_was_told_unless_they_ask_anew(open_chat: OpenChat) -> None:
    """A program that asks on its own behalf later is told that it has asked before."""
    async with open_chat(access=MEMBERS) as chat:
        await chat.ask()
        questions = Questions(chat.conversations.deps)

        async def ask(person: str, *, anew: bool = False) -> AskEvent:
            asker = Principal(name=person, platform="fake", person=person)
            *_, last = [one async for one in questions.begin(asker, QUESTION, surface="api", anew=anew).replay()]
            return last

        first, second, anew, refused = await ask("bob"), await ask("bob"), await ask("bob", anew=True), await ask("eve")

        assert isinstance(first, Answered)
        assert first.freshness.startswith("An earlier answer, still true at")
        assert first.cost.model_calls == 0
        assert isinstance(second, Answered)
        assert second.freshness.startswith("Asked by you just now, still true at")
        assert second.citations == first.citations
        assert isinstance(anew, Answered)
        assert "still true" not in anew.freshness
        assert isinstance(refused, NotAnswered)
