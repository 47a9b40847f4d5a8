"""Goal runs in Slack and Discord: proposed, approved by those who may, shown in progress, and handed over."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from threading import Event

import pytest

from agent.llm.models import ChatModels
from bot.errors import NotAllowed
from bot.messages import IncomingMessage, Place
from tests.agent.conftest import SECRET, redact
from tests.agent.goals.conftest import MENDED
from tests.agent.goals.test_goal_runs import claim_test
from tests.bot.conversations.conftest import GoalWorld, OpenGoals
from tests.bot.discord_worlds import DiscordWorld
from tests.bot.slack_worlds import SlackWorld
from tests.fakes.discord.messages import Seen as DiscordSeen
from tests.fakes.discord.permissions import Permission
from tests.fakes.gemini import Received, Reply, calls, fills
from tests.fakes.slack.messages import Seen as SlackSeen

WRITE = ("file_write", {"path": "parser.py", "content": MENDED})
MAKE = "make test_parser.py pass"
CHECK = "check that parse('7') returns [8]"
SHALL = "Shall I start it?"
DISPROVED = calls(("file_write", {"path": "test_citebot_claim.py", "content": claim_test(8)}))
CHANGED_DISPROVED = calls(("file_write", {"path": "test_citebot_claim.py", "content": claim_test(9)}))
FALSE = "**False.** The claim is false"
_CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
on_both = pytest.mark.parametrize("platform", ["slack", "discord"])


def hold(gate: Event, reply: Reply) -> Callable[[Received], Reply]:
    """Let a model take its time with a reply."""

    def answer(_: Received) -> Reply:
        gate.wait()
        return reply

    return answer


async def approve(world: GoalWorld, text: str) -> str:
    """Ask for a run and have it begin; return the message's id."""
    message = await world.chat.mention(text)
    await world.see(SHALL)
    await world.press("Approve")
    return message


@on_both
async def test_tests_are_made_to_pass_once_somebody_who_may_has_approved(open_goals: OpenGoals, platform: str) -> None:
    async with open_goals(platform) as world:
        gate = Event()
        world.gemini.replies.append(calls(("bash_exec", {"command": "cat parser.py # @everyone"})))
        world.gemini.script = hold(gate, calls(WRITE))
        await world.chat.mention(MAKE, author="bob")
        (proposal,) = await world.see("Anyone listed as `run`")
        assert "`python -m pytest test_parser.py`" in proposal
        assert "At most 20 iterations" in proposal
        assert "You aren't allowed to start goal runs" in await world.press("Approve", "bob")
        assert world.bench.sandbox.lines == []

        await world.press("Approve")
        (growing,) = await world.see("**Iteration 2 of 20**")
        assert "Not reached: 1 failure, 1 passed" in growing
        gate.set()
        (final,) = await world.see("**Reached.**")

        assert "2 calls of `google_genai:gemini-flash-latest`: 200 tokens in, 40 out" in final
        assert "/parser.py#L2-L2" in final
        (patch,) = await world.see_files()
        assert "+    return [int(part) for part in text.split(',') if part]" in patch
        assert "`git apply pytest-c0ffeec.patch` at `c0ffeec`" in final
        assert world.is_quiet


@on_both
@pytest.mark.exhaustive
async def test_a_reaction_approves_and_elsewhere_means_nothing(open_goals: OpenGoals, platform: str) -> None:
    async with open_goals(platform) as world:
        world.gemini.script = lambda _: DISPROVED
        await world.chat.mention(CHECK)
        await world.see(SHALL)
        await react(world, "bob")
        if isinstance(world.chat, DiscordWorld):
            told = (await world.wait(lambda said: len(said) == 2))[1]
            assert "You aren't allowed to start goal runs" in told
        await react(world, "ann")

        await world.wait(lambda said: FALSE in said[0])
        before = world.read()
        await react(world, "ann")
        assert world.read() == before


@pytest.mark.exhaustive
async def test_a_word_approves_and_the_claim_is_answered_with_its_test(open_goals: OpenGoals) -> None:
    async with open_goals("slack") as world:
        world.gemini.script = lambda _: DISPROVED
        thread = await world.chat.mention(CHECK)
        await world.see(SHALL)
        await world.reply("approve", author="bob", thread=thread)
        await world.see(SHALL, "You aren't allowed to start goal runs")
        await world.reply("approve", thread=thread)

        final, _, _ = await world.see(FALSE, "You aren't allowed to start goal runs", "Approved. It continues")

        assert "assert call() == [8]" in final
        assert "What the run reported" in final
        assert "Code at `c0ffeec`: [`parser.py:1`](https://git.example.com/" in final
        assert "test_citebot_claim.py" in (await world.see_files())[0]
        await world.reply("approve", thread=thread)
        await world.wait(lambda said: len(said) == 4)
        assert len(world.gemini.received) == 1


@on_both
async def test_who_hesitates_starts_nothing_and_is_told_once(open_goals: OpenGoals, platform: str) -> None:
    async with open_goals(platform) as world:
        world.gemini.script = lambda _: DISPROVED
        thread = await world.chat.mention(CHECK)
        await world.see(SHALL)
        for hesitation in ("okay not now", "ok hold on", "yes", "yes but wait"):
            await world.reply(hesitation, thread=thread)
        said = await world.wait(lambda said: len(said) >= 2)

        assert "neither a yes nor a no" in said[1]
        assert "Write `approve` to start it" in said[1]
        assert (world.bench.sandbox.lines, world.gemini.received) == ([], [])
        await world.reply("approve", thread=thread)
        await world.see(FALSE, "neither a yes nor a no", "Approved. It continues")


@pytest.mark.exhaustive
async def test_of_several_proposals_the_word_has_to_name_the_newest(open_goals: OpenGoals) -> None:
    async with open_goals("slack") as world:
        world.gemini.script = lambda _: DISPROVED
        thread = await world.chat.mention("check that parse('7') returns [9]")
        await world.see(SHALL)
        await world.chat.mention(CHECK, thread=thread)
        _, newest = await world.see(SHALL, SHALL)
        word = re.search(r"`(approve \w{8})`", newest)
        assert word is not None

        await world.reply("approve", thread=thread)
        await world.see(SHALL, SHALL, "There are several proposals here")
        await world.reply("approve 0badcafe", thread=thread)
        await world.see(SHALL, SHALL, "There are several", "No proposal named `0badcafe` is waiting")
        assert world.gemini.received == []
        await world.reply(word[1], thread=thread)
        await world.see(SHALL, FALSE, "There are several", "No proposal named", "Approved. It continues")


async def test_a_word_written_before_the_proposal_was_shown_approves_nothing(open_goals: OpenGoals) -> None:
    async with open_goals("slack") as world:
        await world.chat.mention(CHECK)
        await world.see(SHALL)
        goals = world.chat.conversations.deps.goals
        (shown,) = await goals.records.recent(since=0.0, most=1)
        place = Place(platform="slack", workspace="T1", channel=world.chat.channel)
        early = IncomingMessage(
            place=place, id="1", author=world.chat.people["ann"], text="approve", kind="mention", sent_at=shown.at - 1
        )

        with pytest.raises(NotAllowed, match="before this was shown"):
            await goals.decide("approve", early, shown.conversation, named="")


@pytest.mark.exhaustive
async def test_the_conversation_knows_what_the_run_has_shown(open_goals: OpenGoals) -> None:
    async with open_goals("slack") as world:
        world.gemini.script = lambda _: DISPROVED
        await approve(world, CHECK)
        await world.see(FALSE)

        ((claim, known),) = world.chat.agent.remembered.values()
        assert claim == "parse('7') returns [8]"
        assert known.startswith("This was a goal run (claim), which a person had approved; it ran in a sandbox.")
        assert FALSE in known
        assert "Checked with `python -m pytest test_citebot_claim.py`: 1 iteration, 1 command in the sandbox" in known


@pytest.mark.exhaustive
async def test_who_asked_may_end_a_proposal_and_a_second_word_changes_nothing(open_goals: OpenGoals) -> None:
    async with open_goals("slack") as world:
        thread = await world.chat.mention(CHECK, author="bob")
        await world.see("Anyone listed as `run`")
        await world.reply("abort", author="bob", thread=thread)

        await world.see("Nothing was run: it was not approved.", "Nothing is run.")
        assert world.bench.sandbox.lines == []
        assert world.gemini.received == []


@on_both
@pytest.mark.exhaustive
async def test_where_no_file_can_be_attached_the_patch_is_in_the_message(open_goals: OpenGoals, platform: str) -> None:
    async with open_goals(platform) as world:
        if isinstance(world.chat, SlackWorld):
            world.chat.fake.access.scopes.discard("files:write")
        else:
            world.chat.fake.deny(world.chat.channel, world.chat.fake.bot_id, Permission.ATTACH_FILES)
        world.gemini.script = lambda _: DISPROVED
        await approve(world, CHECK)

        (final,) = await world.wait(lambda said: "could not be attached" in said[0])

        assert "diff --git a/test_citebot_claim.py" in final
        assert "+def test_claim_holds():" in final
        assert world.read_files() == []


async def test_stop_ends_the_run_and_leaves_nothing(open_goals: OpenGoals) -> None:
    async with open_goals("slack") as world:
        world.gemini.script = lambda _: calls(("bash_exec", {"command": "sleep 300 & sleep 300"}))
        thread = await approve(world, CHECK)
        await world.see("sleep 300")
        while not world.bench.sandbox.running:  # noqa: ASYNC110 - the command is shown before it begins
            await asyncio.sleep(0.01)

        await world.chat.mention("stop", author="bob", thread=thread)
        (final,) = await world.wait(lambda said: len(said) == 1 and "Stopped, as you asked." in said[0])

        assert "`$ sleep 300 & sleep 300`" in final
        assert world.is_quiet


async def test_a_killed_run_goes_on_in_the_same_message(open_goals: OpenGoals) -> None:
    async with open_goals("slack") as world:
        gate = Event()
        world.gemini.replies.append(calls(("bash_exec", {"command": "cat parser.py"})))
        world.gemini.script = hold(gate, DISPROVED)
        await approve(world, CHECK)
        await world.see("**Iteration 2 of 20**")

        await world.chat.crash()
        assert world.is_quiet
        gate.set()
        world.chat.goals = world.bench.open_agent()
        await world.chat.begin()

        await world.see(FALSE)
        assert len(world.gemini.received) == 3  # the reply that nobody waited for any more, and it again
        assert len(await world.see_files()) == 1


@pytest.mark.exhaustive
async def test_what_ends_in_order_is_gone_on_with_by_the_next_process(open_goals: OpenGoals) -> None:
    async with open_goals("slack") as world:
        gate = Event()
        world.gemini.script = hold(gate, DISPROVED)
        await approve(world, CHECK)
        await world.see("**Iteration 1 of 20**")

        await world.chat.end()
        gate.set()
        world.chat.goals = world.bench.open_agent()
        await world.chat.begin()

        await world.see(FALSE)


@pytest.mark.exhaustive
async def test_an_edit_ends_the_run_and_proposes_anew_and_a_deletion_leaves_nothing(open_goals: OpenGoals) -> None:
    async with open_goals("slack") as world:
        world.gemini.script = lambda _: calls(("bash_exec", {"command": "sleep 300"}))
        message = await approve(world, CHECK)
        await world.see("sleep 300")
        await world.chat.edit(message, "check that parse('7') returns [9]")
        await world.see("`parse('7') returns [9]`")
        assert world.is_quiet

        await world.press("Approve")
        await world.see("sleep 300")
        await world.chat.delete(message)
        await world.see()
        await world.wait(lambda _: world.is_quiet)


@on_both
async def test_who_approves_what_was_changed_meanwhile_approves_nothing(open_goals: OpenGoals, platform: str) -> None:
    async with open_goals(platform) as world:
        world.gemini.script = lambda _: CHANGED_DISPROVED
        message = await world.chat.mention(CHECK, author="bob")
        await world.see("Anyone listed as `run`")
        shown = deepcopy(world.chat.replies()[0])
        await world.chat.edit(message, "check that parse('7') returns [9]")
        await world.see("`parse('7') returns [9]`")

        told = await press_late(world, shown)

        assert "has changed" in told
        assert (world.bench.sandbox.lines, world.gemini.received) == ([], [])
        await world.press("Approve")
        await world.see(FALSE)


@pytest.mark.exhaustive
async def test_a_changed_proposal_of_somebody_else_is_approved_by_its_button_alone(open_goals: OpenGoals) -> None:
    async with open_goals("slack") as world:
        world.gemini.script = lambda _: DISPROVED
        message = await world.chat.mention(CHECK, author="bob")
        await world.see("Anyone listed as `run`")
        await world.chat.edit(message, "check that parse('7') returns [9]")
        await world.see("`parse('7') returns [9]`")

        await react(world, "ann")
        await world.reply("approve", thread=message)

        changed, _ = await world.see("`parse('7') returns [9]`", "There are several proposals here")
        word = re.search(r"`(approve \w{8})`", changed)
        assert word is not None
        await world.reply(word[1], thread=message)

        await world.see(
            "`parse('7') returns [9]`", "There are several", "Look at it again, and approve it by its button"
        )
        assert (world.bench.sandbox.lines, world.gemini.received) == ([], [])


@pytest.mark.exhaustive
async def test_a_proposal_shows_all_that_is_wanted_and_all_that_runs(open_goals: OpenGoals) -> None:
    async with open_goals("discord") as world:
        await world.chat.mention(f"check that {'it parses and ' * 60} prints what it finds", author="bob")
        said = await world.wait(lambda said: bool(said) and "Anyone listed as" in said[-1])
        assert "prints what it finds" in "".join(said)

        tests = " ".join(f"tests/test_number_{number}.py" for number in range(30))
        await world.chat.mention(f"make {tests} pass", author="bob")
        said = await world.wait(lambda now: len(now) > len(said) and "Anyone listed as" in now[-1])
        assert "".join(said).count("tests/test_number_29.py") == 2


async def press_late(world: GoalWorld, shown: SlackSeen | DiscordSeen) -> str:
    """Have Ann press the button under a proposal as she has seen it; return what she is told."""
    if isinstance(world.chat, SlackWorld):
        assert isinstance(shown, SlackSeen)
        return await world.chat.choose_late("Approve", shown, author="ann")
    assert isinstance(shown, DiscordSeen)
    return await world.chat.choose_late("Approve", shown, author="ann")


@pytest.mark.exhaustive
async def test_an_answerer_runs_what_a_front_takes_in(open_goals: OpenGoals) -> None:
    async with open_goals("slack") as world:
        await world.chat.end()
        world.chat.is_split = True
        await world.chat.begin()
        world.gemini.script = lambda _: DISPROVED

        await approve(world, CHECK)

        await world.see(FALSE)


@pytest.mark.exhaustive
async def test_runs_that_wait_leave_the_slots_of_an_answerer_to_answers(open_goals: OpenGoals) -> None:
    async with open_goals("slack") as world:
        await world.chat.end()
        world.chat.is_split = True
        world.chat.policy = replace(world.chat.policy, max_concurrent=3)
        await world.chat.begin()
        world.gemini.script = lambda _: calls(("bash_exec", {"command": "sleep 300"}))
        threads = []
        for number in range(3):
            threads.append(await world.chat.mention(f"check that it returns {number}"))
            await world.wait(lambda said: bool(said) and SHALL in said[-1])
            await world.press("Approve")
            await world.wait(lambda said: SHALL not in said[-1])

        await world.chat.mention("where is send?")
        await world.wait(lambda said: "Answer to: where is send?" in said[-1])
        assert sum("sleep 300" in one for one in world.read()) <= 2

        await world.chat.mention("stop", thread=threads[0])
        await world.wait(lambda said: sum("sleep 300" in one and "Stopped" not in one for one in said) == 2)


@pytest.mark.exhaustive
async def test_runs_beyond_the_places_wait_and_say_so(open_goals: OpenGoals) -> None:
    async with open_goals("slack") as world:
        world.gemini.script = lambda _: calls(("bash_exec", {"command": "sleep 300"}))
        for number in range(3):
            await world.chat.mention(f"check that it returns {number}")
            await world.wait(lambda said: bool(said) and SHALL in said[-1])
            await world.press("Approve")
            await world.wait(lambda said: SHALL not in said[-1] and "Preparing" not in said[-1])

        said = world.read()
        assert "2 goal runs are ahead of this one; stop ends the wait" in said[2].replace("`", "")
        assert all("sleep 300" in one or "Iteration 1" in one for one in said[:2])


@pytest.mark.parametrize("asker", ["nobody", "model", "direct"])
@pytest.mark.exhaustive
async def test_where_nothing_may_be_run_a_claim_is_looked_up_and_the_reply_says_why(
    open_goals: OpenGoals, asker: str
) -> None:
    reasons = {
        "nobody": "naming their ids as `run` in the table [access] of citebot.toml",
        "model": "A goal run needs a language model that can call tools. Set GOOGLE_API_KEY",
        "direct": "You aren't allowed to start goal runs.",
    }
    async with open_goals("slack") as world:
        await world.chat.end()
        if asker == "nobody":
            world.chat.goals = None
        if asker == "model":
            world.bench.models = ChatModels()
            world.chat.goals = world.bench.open_agent()
        await world.chat.begin()
        write = world.chat.direct if asker == "direct" else world.chat.mention

        await write(CHECK, author="bob")
        (said,) = await world.see("Answer to: check that parse('7') returns [8]")
        assert reasons[asker] in said
        await write(MAKE, author="bob")
        _, said = await world.see("Answer to", reasons[asker])
        assert "Answer" not in said


@pytest.mark.exhaustive
async def test_an_answer_by_inference_offers_to_be_verified_and_runs_nothing_unasked(open_goals: OpenGoals) -> None:
    async with open_goals("slack") as world:
        world.chat.agent.model = "google_genai:fake"
        world.gemini.script = lambda _: DISPROVED
        world.gemini.reading = fills({"asserts_claim": False, "difference": "It is about the parser."})
        await world.chat.mention("does send retry?", author="bob")
        (said,) = await world.see("Answer to: does send retry?")
        assert "verify" not in said
        thread = await world.chat.mention("does send retry?")
        await world.see("Answer to", "Shall I verify this by running it?")
        assert "You aren't allowed to start" in await world.press("Verify", "bob")
        await world.press("Verify")
        _, _, proposal = await world.see("Answer to", "Answer to", SHALL)
        assert 'The answer to "does send retry?" is: Answer to: does send retry?' in proposal
        assert (world.bench.sandbox.lines, world.gemini.received) == ([], [])
        await world.reply("approve", thread=thread)
        await world.see("Answer to", "Answer to", "Not shown", "Approved.")


@pytest.mark.exhaustive
async def test_what_people_ask_each_other_in_a_help_channel_is_looked_up(open_goals: OpenGoals) -> None:
    async with open_goals("slack") as world:
        chat = world.chat
        assert isinstance(chat, SlackWorld)
        await chat.end()
        chat.policy = replace(chat.policy, manners={chat.channel: "every question"})
        await chat.begin()

        await chat.fake.message(chat.channel, chat.people["ann"], "check whether send retries, anyone?")

        (said,) = await world.see("Answer to: check whether send retries")
        assert "goal run" not in said


@pytest.mark.exhaustive
async def test_verify_alone_says_what_to_write_where_there_is_nothing_to_verify(open_goals: OpenGoals) -> None:
    async with open_goals("slack") as world:
        thread = await world.chat.mention("where is send?")
        await world.see("Answer to")
        await world.chat.mention("verify", thread=thread)
        await world.see("Answer to", "There is nothing here to verify.")


async def test_nothing_of_a_run_shows_a_secret_or_rings_anybody(open_goals: OpenGoals) -> None:
    async with open_goals("discord") as world:
        await world.chat.end()
        world.allow("ann", mask=redact)
        await world.chat.begin()
        rings = f"# @everyone <!channel> <@U1> {SECRET}\n"
        test = ("file_write", {"path": "test_citebot_claim.py", "content": rings + claim_test(8)})
        world.gemini.script = lambda _: calls(test)
        await approve(world, "check that @everyone gets [8] <!here>")

        (final,) = await world.see(FALSE)
        (patch,) = await world.see_files()

        assert SECRET not in patch + final
        assert "Secrets in the patch are masked" in final
        for ring in ("@everyone", "<!channel>", "<!here>", "<@U1>"):
            assert ring not in _CODE.sub("", final)


async def react(world: GoalWorld, person: str) -> None:
    """Put a check mark on citebot's first message."""
    chat = world.chat
    if isinstance(chat, SlackWorld):
        await chat.fake.react(chat.channel, chat.replies()[0].ts, chat.people[person], "white_check_mark")
        await chat.fake.delivered()
    else:
        chat.fake.react(chat.replies()[0].id, chat.people[person], "✅")
