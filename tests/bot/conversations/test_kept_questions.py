"""Questions are kept only where the operator opted in, masked, and go when their author or the operator wants it."""

from __future__ import annotations

import os
import pwd
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot.access import AccessPolicy
from bot.app import TeamApp
from bot.cli.upkeep import export_questions
from bot.clock import SystemClock
from bot.conversations.assembly import open_conversations
from bot.conversations.dispatcher import Conversations
from bot.errors import BotError, NotAllowed
from bot.serving.service import make_chat_policy
from bot.settings import RepositoryTable, Settings
from bot.storage.database import INBOX_FILE, open_database
from bot.storage.turn_records import AskedQuestion, TurnRecordStore
from scripts.intent_training.lines import read_lines
from tests.bot.chat import message
from tests.fakes.platform import ABLE, FakePlatform
from tests.fakes.repositories import GitRepo
from tests.fakes.watched import Unseen
from tests.waiting import wait_until

TOKEN = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
ACCOUNT = pwd.getpwuid(os.geteuid()).pw_name


class Chat:
    """A channel in which questions are asked, and what is kept of them."""

    def __init__(self, conversations: Conversations, platform: FakePlatform, home: Path) -> None:
        self.conversations = conversations
        self.platform = platform
        self.home = home

    async def ask(self, text: str, number: str = "1", *, replies: int = 1) -> None:
        await self.conversations.receive(message(text, id=number))
        await wait_until(
            lambda: sum(bool(one.content.footer) for one in self.platform.messages.values()) >= replies, "the answer"
        )

    async def kept(self) -> Sequence[AskedQuestion]:
        async with open_database(self.home / INBOX_FILE) as database:
            return await TurnRecordStore(database, SystemClock()).list_questions()


def make_settings(tmp_path: Path, *, days: int = 30, accounts: tuple[str, ...] = (f"terminal:{ACCOUNT}",)) -> Settings:
    shop = GitRepo(tmp_path / "shop")
    if not (shop.root / "pay.py").exists():
        shop.write("pay.py", "def charge_card():\n    return 1\n\n\ndef refund():\n    return charge_card()\n")
        shop.commit("first")
    return Settings(
        home=tmp_path / "home",
        repositories=(RepositoryTable(path=shop.root),),
        model="none",
        keep_question_days=days,
        access=AccessPolicy(questions=accounts),
    )


@asynccontextmanager
async def open_chat(settings: Settings, tmp_path: Path) -> AsyncIterator[Chat]:
    platform = FakePlatform(SystemClock(), ABLE)
    async with (
        TeamApp.open(settings, tmp_path, Unseen()) as team,
        open_conversations(
            team.agent, team.stock.library, store=open_database(settings.home / INBOX_FILE),
            policy=make_chat_policy(settings, team),
        ) as conversations,
        conversations.open(),
        conversations.connect_platform("fake", platform),
    ):  # fmt: skip
        yield Chat(conversations, platform, settings.home)


async def test_by_default_nothing_of_a_question_is_kept(tmp_path: Path) -> None:
    async with open_chat(make_settings(tmp_path, days=0), tmp_path) as chat:
        await chat.ask("who calls charge_card?")
        assert await chat.kept() == []
        async with open_database(chat.home / INBOX_FILE) as database:
            records = await database.rows("SELECT record FROM turns")
    assert len(records) == 1
    assert "who calls" not in str(records)
    assert '"lookup"' not in str(records)


async def test_where_it_is_wanted_a_question_is_kept_masked_with_its_lookup(tmp_path: Path) -> None:
    async with open_chat(make_settings(tmp_path), tmp_path) as chat:
        await chat.ask(f"who calls charge_card in pay.py? mail ada@example.org, {{a|b}} {TOKEN}")
        (kept,) = await chat.kept()

    assert kept.lookup in {"callers", "usages"}
    assert kept.opinion is None
    assert kept.text.startswith("who calls SYMBOL in PATH")
    assert not {"charge_card", "ada@example.org", TOKEN, "{", "|"} & set(kept.text.split())
    assert TOKEN not in kept.text


async def test_a_question_goes_with_its_message_its_edit_and_its_conversation(tmp_path: Path) -> None:
    async with open_chat(make_settings(tmp_path), tmp_path) as chat:
        await chat.ask("who calls charge_card?")
        await chat.conversations.handle_edit(message("where is refund defined?"))
        await wait_until(
            lambda: "refund" in str([one.content for one in chat.platform.messages.values()]), "the new answer"
        )
        await until_kept(chat, ["where is refund defined?"])
        await chat.conversations.handle_deletion(message().key)
        await until_kept(chat, [])
        await chat.ask("who calls charge_card?", "2")
        await until_kept(chat, ["who calls SYMBOL ?"])
        await chat.conversations.receive(message("forget", id="3"))
        await until_kept(chat, [])


async def until_kept(chat: Chat, texts: Sequence[str]) -> None:
    """Wait until just these questions are kept."""

    async def are_kept() -> bool:
        return [one.text for one in await chat.kept()] == texts

    await wait_until(are_kept, f"the kept questions {texts}")


async def test_the_export_has_the_form_of_the_examples(tmp_path: Path) -> None:
    settings, folder = make_settings(tmp_path), tmp_path / "asked"
    async with open_chat(settings, tmp_path) as chat:
        await chat.ask("who calls charge_card?")
        await chat.ask("where is charge_card defined?", "2", replies=2)

    told = await export_questions(settings, SystemClock(), folder, days=1, as_json=False)

    assert told.output.startswith("Wrote 2 questions to 2 files in ")
    assert {(one.text, one.language) for one in read_lines(folder)} == {
        ("who calls SYMBOL ?", "not rated"),
        ("where is SYMBOL defined?", "not rated"),
    }
    with pytest.raises(BotError, match="already exists"):
        await export_questions(settings, SystemClock(), folder, days=None, as_json=False)


async def test_only_accounts_that_are_named_may_export(tmp_path: Path) -> None:
    for accounts in ((), ("terminal:somebody-else",), (f"slack:{ACCOUNT}",)):
        settings = make_settings(tmp_path, accounts=accounts)
        with pytest.raises(NotAllowed, match=f"terminal:{ACCOUNT}"):
            await export_questions(settings, SystemClock(), tmp_path / "asked", days=None, as_json=False)
