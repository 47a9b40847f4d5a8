"""Behaviour that people in Slack can rely on: access, commands, DMs, buttons, and the look of an answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agent.events import AgentEvent
from agent.ports import Answer, RunPermit
from agent.questions.attachments import NOTHING_ATTACHED, Attachments
from bot.access import AccessPolicy
from bot.conversations.assembly import ChatPolicy
from indexer.types import IndexStatus
from tests.bot.adapters.slack.conftest import IN_BOTH_MODES
from tests.bot.contract import have, settled
from tests.bot.slack_worlds import SlackWorld
from tests.bot.worlds import HOSTS
from tests.fakes.answerer import FakeAnswerer, FakeRepositories
from tests.fakes.parts import ANSWER, CITATION, HEAD, event
from tests.fakes.slack import FakeSlack, Seen

OPEN = ChatPolicy(hosts=HOSTS, access=AccessPolicy(reindex=("*",)))
LINK = f"https://git.example.com/demo/blob/{HEAD}/src/session.py#L10-L24"


class ToolUser(FakeAnswerer):
    """Looks two things up, waits for the gate before each, and cites what it read."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = [asyncio.Event() for _ in range(3)]

    async def ask(
        self,
        question: str,
        *,
        thread: str,
        repositories: Sequence[str] = (),
        run_id: str | None = None,
        permit: RunPermit | None = None,
        attachments: Attachments = NOTHING_ATTACHED,
    ) -> AsyncIterator[AgentEvent]:
        self.asked.append((question, thread, ", ".join(repositories) or None))
        yield event("step_start", node="tool_executor", stage="Looking it up")
        yield event("tool_start", tool="search_codebase", args={}, label="Searching", shown="parse_date")
        await self.steps[0].wait()
        yield event("tool_start", tool="read_file", args={}, label="Reading", shown="indexer/search/ranking.py")
        await self.steps[1].wait()
        yield event("token", text="Events are sent ")
        await self.steps[2].wait()
        text = "Events are sent by `Session.send` [1]. <!channel> [more](https://evil.example/?q=secret)"
        yield event("token", text=text.removeprefix("Events are sent "))
        yield event("answer", answer=self._cited(text))

    def _cited(self, text: str) -> Answer:
        return replace(ANSWER, text=text, citations=(replace(CITATION, url=LINK),))


def wording(seen: Seen) -> str:
    return "\n".join([seen.text, *seen.tasks])


async def whispered(world: SlackWorld, words: str) -> Seen:
    def found() -> list[Seen]:
        return [each for each in world.fake.ephemeral(world.channel, world.people["ann"]) if words in each.text]

    return (await world.fake.until(found))[-1]


@pytest.mark.parametrize("streaming", ["auto", "off"])
async def test_an_answer_shows_its_tools_then_text_then_sources_and_buttons(tmp_path: Path, streaming: str) -> None:
    async with FakeSlack() as fake:
        agent = ToolUser()
        world = SlackWorld(fake, tmp_path / "i.sqlite", agent=agent, streaming=streaming)  # type: ignore[arg-type]
        async with world.running():
            question = await world.mention("where is send?")
            for step, words in zip(
                agent.steps, ("parse_date", "indexer/search/ranking.py", "Events are sent"), strict=True
            ):
                await fake.until(lambda words=words: [each for each in world.replies() if words in wording(each)])  # type: ignore[misc]
                step.set()
            (seen,) = await fake.until(lambda: [each for each in world.replies() if "citebot_rate" in each.buttons])

            assert f"`Session.send` [[1]]({LINK})." in seen.text
            assert "demo at 0123456" in seen.text
            assert (seen.thread_ts, seen.pings, "evil.example/" in seen.text) == (question, (), False)
            assert not seen.streaming


async def test_the_x_reaction_of_the_asker_stops_the_answer(world: SlackWorld) -> None:
    world.agent.gate = asyncio.Event()
    await world.mention("where is send?")
    await world.agent.begun.acquire()
    (seen,) = world.replies()

    await world.fake.react(world.channel, seen.ts, world.people["ann"], "x")
    await settled(world, "Stopped, as you asked.")


async def test_an_answer_is_watched_by_a_reaction_and_counts_first_when_pinned(world: SlackWorld) -> None:
    world.agent.cites = True
    await world.mention("where is send?")
    await settled(world, "demo at 0123456")
    (seen,) = world.replies()
    living, ann = world.conversations.deps.living, world.people["ann"]
    entry = (await world.conversations.deps.inbox.list_newest("slack", most=1))[0]
    await world.conversations.turns.wait_for(entry.id)
    assert living is not None

    async def read_marks() -> tuple[bool, bool]:
        answer = await living.find(entry.run_id)
        assert answer is not None
        return answer.is_watched, answer.is_pinned

    await world.fake.react(world.channel, seen.ts, world.people["bob"], "eyes")
    await world.fake.react(world.channel, seen.ts, ann, "eyes")
    await whispered(world, "I'll write here once")
    assert await read_marks() == (True, False)
    await world.fake.take_reaction(world.channel, seen.ts, ann, "eyes")
    await world.fake.pin(world.channel, seen.ts, ann)
    await world.fake.delivered()
    assert await read_marks() == (False, True)
    await world.fake.pin(world.channel, seen.ts, ann, down=True)
    await world.fake.delivered()
    assert await read_marks() == (False, False)


@pytest.mark.parametrize("why", ["external", "pending"])
async def test_a_channel_that_outsiders_read_is_refused(world: SlackWorld, why: str) -> None:
    setattr(world.fake.workspace.channels[world.channel], why, True)

    await world.mention("where is send?")

    await whispered(world, "People outside your organization can read this channel")
    assert world.said() == []
    assert world.agent.asked == []


async def test_a_channel_that_slack_does_not_describe_is_refused(world: SlackWorld) -> None:
    world.fake.access.scopes.discard("channels:read")

    await world.mention("where is send?")

    await whispered(world, "People outside your organization")
    assert world.agent.asked == []


async def test_a_thread_of_people_is_read_without_who_they_are(world: SlackWorld) -> None:
    ann, bob = world.people["ann"], world.people["bob"]
    thread = await world.fake.message(world.channel, bob, f"load_order fails, ask <@{ann}> in <#{world.channel}>")
    await world.mention("any idea?", thread=thread)
    await settled(world, "Answer to: any idea?")
    ((question, _, _),) = world.agent.asked
    assert "> person 1: load_order fails, ask @someone in #channel" in question
    assert not [name for name in (ann, bob, world.channel) if name in question]


@pytest.mark.parametrize("said", ["", "<@{}> any idea?", "<!here> anybody?"])
async def test_a_mention_without_a_question_asks_what_the_thread_does(world: SlackWorld, said: str) -> None:
    thread = await world.fake.message(world.channel, world.people["bob"], "where is send?")
    await world.mention(said.format(world.people["bob"]), thread=thread)
    await settled(world, "Answer to:")
    ((question, _, _),) = world.agent.asked
    assert "> person 1: where is send?" in question


async def test_answers_to_direct_messages_appear_nowhere_else(world: SlackWorld) -> None:
    await world.direct("where is send?")
    await settled(world, "Answer to")
    ann = world.people["ann"]
    dm = world.fake.dm_channel(ann)

    sent = [call for call in world.fake.calls if call.method.startswith("chat.")]
    assert {call.args["channel"] for call in sent} == {dm}
    assert world.fake.answers(world.channel) == []
    assert "citebot_share" not in world.replies()[0].buttons


async def test_a_direct_message_shows_a_status_before_its_answer(world: SlackWorld) -> None:
    await world.direct("where is send?")
    await settled(world, "Answer to")

    methods = [call.method for call in world.fake.calls]
    assert methods.index("assistant.threads.setStatus") < methods.index("chat.startStream")
    assert world.fake.workspace.statuses == {}


async def test_a_thread_of_a_direct_message_is_a_conversation(world: SlackWorld) -> None:
    ann = world.people["ann"]
    thread = await world.fake.start_assistant_thread(ann)
    dm = world.fake.dm_channel(ann)
    prompts = world.fake.workspace.prompts
    await world.fake.until(lambda: (dm, thread) in prompts)

    await world.fake.dm(ann, "where is send?", thread)
    await settled(world, "where is send?")
    await world.fake.dm(ann, "and who calls it?", thread)
    await settled(world, "where is send?", "who calls it?")

    assert {each.thread_ts for each in world.replies()} == {thread}
    assert len({conversation for _, conversation, _ in world.agent.asked}) == 1


async def test_the_messages_tab_suggests_questions(world: SlackWorld) -> None:
    ann = world.people["ann"]
    await world.fake.open_home(ann, "messages")
    dm = world.fake.dm_channel(ann)

    prompts = await world.fake.until(lambda: world.fake.workspace.prompts.get((dm, ""), []))

    assert 1 <= len(prompts) <= 4


class Behind(FakeRepositories):
    async def status(self, name: str) -> IndexStatus:
        return replace(await super().status(name), commits_behind=3)


async def test_the_home_tab_tells_how_many_commits_are_missing(tmp_path: Path) -> None:
    async with FakeSlack() as fake:
        world = SlackWorld(fake, tmp_path / "i.sqlite")
        world.repositories = Behind()
        async with world.running():
            await fake.open_home(world.people["ann"])
            assert "3 commits behind" in await fake.until(lambda: fake.home(world.people["ann"]))


@pytest.mark.parametrize(
    ("command", "text", "words"),
    [
        ("/reindex", "demo full", "`demo` is indexed"),
        ("/citebot", "status", "1,234 chunks"),
        ("/citebot", "", "reindex"),
    ],
)
async def test_a_slash_command_is_answered_to_its_author_alone(
    world: SlackWorld, command: str, text: str, words: str
) -> None:
    sent = await world.fake.slash(command, text, channel=world.channel, user=world.people["ann"])

    await whispered(world, words)
    await world.fake.delivered()

    assert sent.acked
    assert world.replies() == []


async def test_a_private_answer_is_shared_with_the_channel_on_request(world: SlackWorld) -> None:
    ann = world.people["ann"]
    await world.fake.slash("/citebot", "where is send?", channel=world.channel, user=ann)
    seen = await whispered(world, "Answer to: where is send?")
    assert world.replies() == []
    assert len(_whispers(world)) == 1

    await world.fake.press(world.channel, seen.ts, "citebot_share", user=ann)

    await settled(world, "Answer to: where is send?")
    assert world.replies()[0].thread_ts is None

    await world.fake.press(world.channel, seen.ts, "citebot_share", user=ann)

    await whispered(world, "This answer has been shared.")
    assert len(world.replies()) == 1


def _whispers(world: SlackWorld) -> list[Seen]:
    return world.fake.ephemeral(world.channel, world.people["ann"])


async def test_the_command_stop_ends_what_its_user_has_asked_in_the_channel(world: SlackWorld) -> None:
    world.agent.gate = asyncio.Event()
    await world.mention("where is send?")
    await world.mention("where is receive?", author="bob")
    await world.agent.begun.acquire()
    await world.agent.begun.acquire()

    await world.fake.slash("/citebot", "stop", channel=world.channel, user=world.people["ann"])

    await whispered(world, "Stopped.")
    world.agent.gate.set()
    await settled(world, "Stopped, as you asked.", "Answer to: where is receive?")


@pytest.mark.parametrize("external", [True, False])
async def test_what_an_event_says_of_its_channel_counts_where_slack_does_not_describe_that(
    world: SlackWorld, external: bool
) -> None:
    channel = world.fake.workspace.channels[world.channel]
    channel.undescribed, channel.external = True, external

    await world.mention("where is send?")

    if external:
        await whispered(world, "People outside your organization")
    else:
        await settled(world, "Answer to: where is send?")


async def test_a_reaction_to_what_a_person_wrote_stops_nothing(world: SlackWorld) -> None:
    message = await world.mention("where is send?")
    await settled(world, "Answer to")

    await world.fake.react(world.channel, message, world.people["ann"], "x")
    await world.fake.delivered()

    await settled(world, "Answer to")


@pytest.mark.parametrize("streaming", ["auto", "off"])
async def test_an_answer_full_of_markup_is_not_torn_to_pieces(tmp_path: Path, streaming: str) -> None:
    async with FakeSlack() as fake:
        world = SlackWorld(fake, tmp_path / "i.sqlite", streaming=streaming)  # type: ignore[arg-type]
        async with world.running():
            world.agent.repeats = 600
            await world.mention("is a<b && c>d && <=e>?")
            await fake.until(lambda: any("citebot_rate" in each.buttons for each in world.replies()))
            refused = [call for call in fake.calls if call.error]

    assert len(world.replies()) == 3
    assert refused == []
    assert sum(each.text.split().count("<=e>?") for each in world.replies()) == 600


async def test_unknown_commands_buttons_and_shortcuts_are_acknowledged(world: SlackWorld) -> None:
    ann = world.people["ann"]
    message = await world.fake.message(world.channel, ann, "hello")
    await world.fake.open_home(ann)
    await world.fake.slash("/another", "x", channel=world.channel, user=ann)
    await world.fake.shortcut("unknown", world.channel, message, user=ann)
    await world.fake.delivered()

    assert all(each.acked and len(each.attempts) == 1 for each in world.fake.deliveries.sent)


@IN_BOTH_MODES
async def test_who_asks_in_private_is_asked_back_in_private(world: SlackWorld) -> None:
    have(world, "shop", "website")
    ann = world.people["ann"]
    await world.fake.slash("/citebot", "where is send?", channel=world.channel, user=ann)
    asked = await whispered(world, "Which repository do you mean?")

    await world.fake.press(world.channel, asked.ts, asked.buttons[1], user=ann)

    await whispered(world, "Answer to: where is send?")
    assert [repository for _, _, repository in world.agent.asked] == ["website"]
    assert world.replies() == []
