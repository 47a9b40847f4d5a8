"""The contract of every platform: checks over a world of people who write to citebot."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from bot.messages import ButtonAction
from tests.fakes.answerer import FakeAnswerer, FakeRepositories
from tests.fakes.parts import FakeIndex
from tests.fakes.refs import FakeRefs
from tests.waiting import expect, wait_until

GLANCE = 0.002  # seconds between two looks, in which the threads of the database run


class World(Protocol):
    """A platform with a running citebot on it, seen by the people there.

    `begin` opens citebot, `end` closes it in an orderly way; `crash` ends it as a kill does.
    """

    agent: FakeAnswerer
    repositories: FakeRepositories

    async def begin(self) -> None: ...

    async def end(self) -> None: ...

    async def crash(self) -> None: ...

    async def pass_time(self, seconds: float) -> None:
        """Turn the clock on, and let citebot do what it waited for."""

    async def mention(self, text: str, *, author: str = "ann", thread: str = "", deliveries: int = 1) -> str:
        """Write to citebot in a thread, or to begin one; return the message's id, which names its thread."""

    async def attach(self, text: str, files: Mapping[str, bytes]) -> str:
        """Write to citebot, and attach files by their names."""

    async def follow_up(self, text: str, *, thread: str, author: str = "ann", to_others: bool = False) -> str:
        """Write in a thread without naming citebot."""

    async def direct(self, text: str, *, author: str = "ann") -> str:
        """Write a DM."""

    async def edit(self, message: str, text: str) -> None: ...

    async def delete(self, message: str) -> None: ...

    async def press(self, action: ButtonAction, *, author: str = "ann") -> str:
        """Press a button under citebot's newest message; return what the person is told."""

    async def choose(self, label: str, *, author: str = "ann") -> str:
        """Press the button with a label under citebot's newest message; return what the person is told."""

    def said(self) -> list[str]:
        """All that citebot's messages show now, oldest first: text, status and footer."""


async def until(world: World, seen: Callable[[list[str]], bool]) -> list[str]:
    """Wait until what citebot says is as expected, and return it."""
    await wait_until(lambda: seen(world.said()), "seen(world.said())")
    return world.said()


async def settled(world: World, *texts: str) -> list[str]:
    """Wait until there is a message for each text, which contains it."""

    def shown(said: list[str]) -> bool:
        return len(said) == len(texts) and all(text in message for text, message in zip(texts, said, strict=True))

    return await until(world, shown)


async def a_mention_gets_one_answer(world: World) -> None:
    await world.mention("where is send?", deliveries=5)
    await settled(world, "Answer to: where is send?")
    assert len(world.agent.asked) == 1


async def the_answer_says_how_fresh_it_is(world: World) -> None:
    await world.mention("where is send?")
    (said,) = await settled(world, "demo at 0123456")
    assert "Answer to" in said


async def a_sign_of_life_comes_before_the_answer(world: World) -> None:
    world.agent.gate = asyncio.Event()
    await world.mention("where is send?")
    await until(world, lambda said: len(said) == 1 and "Answer" not in said[0])
    world.agent.gate.set()
    await settled(world, "Answer to: where is send?")


async def the_first_places_are_linked_until_the_answer_begins(world: World) -> None:
    url = world.agent.url = "https://git.example.com/demo/blob/0123456/src/session.py#L1-L9"
    world.agent.gate = asyncio.Event()
    await world.mention("where is send?")
    await world.agent.begun.acquire()
    await world.pass_time(5)
    await until(world, lambda said: len(said) == 1 and "src/session.py:1-9" in said[0] and url in said[0])
    world.agent.gate.set()
    (said,) = await settled(world, "Answer to: where is send?")
    assert url not in said


async def a_follow_up_is_answered_in_the_same_conversation(world: World) -> None:
    thread = await world.mention("where is send?")
    await settled(world, "Answer to")
    await world.follow_up("and who calls it?", thread=thread)
    await settled(world, "where is send?", "who calls it?")
    assert len({conversation for _, conversation, _ in world.agent.asked}) == 1


async def a_thread_that_others_join_is_left_to_them(world: World) -> None:
    thread = await world.mention("where is send?")
    await settled(world, "Answer to")
    await world.follow_up("I think it is in session", thread=thread, author="bob")
    await world.follow_up("oh, right", thread=thread)
    await world.follow_up("bob, can you look?", thread=thread, to_others=True)
    await world.follow_up("shall we talk about it tomorrow?", thread=thread, author="bob")
    await world.mention("and who calls it?", thread=thread)
    await settled(world, "where is send?", "who calls it?")


async def whoever_asks_about_the_code_in_its_thread_is_answered(world: World) -> None:
    thread = await world.mention("where is send?")
    await settled(world, "Answer to")
    await world.follow_up("I would have looked in session", thread=thread, author="bob")
    await world.follow_up("who calls it?", thread=thread, author="bob")
    await settled(world, "where is send?", "who calls it?")
    await world.follow_up("does `receive` do that too?", thread=thread, author="eve")
    await settled(world, "where is send?", "who calls it?", "does `receive` do that too?")


_TOLD = ("thanks man, you saved my day", "that's wrong", "the CI is red again", "Das stimmt nicht", "もう大丈夫です")


async def talk_in_a_thread_is_left_to_people(world: World) -> None:
    thread = await world.mention("where is send?")
    await settled(world, "Answer to")
    for said in (
        "great, that works",
        "hmm",
        "never mind",
        "I'll look tomorrow",
        "🎉",
        "vielen Dank!",
        "了解です",
        *_TOLD,
    ):
        await world.follow_up(said, thread=thread)
    await world.follow_up("and who calls it?", thread=thread)
    await settled(world, "where is send?", "who calls it?")
    assert len(world.agent.asked) == 2


async def thanks_get_a_line_and_nothing_below_it(world: World) -> None:
    await world.mention("thanks!")
    await until(world, lambda said: said == ["Answer to: thanks!"])


async def a_thread_without_citebot_is_left_alone(world: World) -> None:
    await world.follow_up("where is send?", thread="99")
    await world.mention("where is receive?")
    await settled(world, "receive")


async def a_muted_thread_is_answered_only_when_asked(world: World) -> None:
    thread = await world.mention("where is send?")
    await settled(world, "Answer to")
    await world.mention("mute", thread=thread)
    await settled(world, "Answer to", "answer only mentions")
    await world.follow_up("and who calls it?", thread=thread)
    await world.mention("unmute", thread=thread)
    await settled(world, "Answer to", "answer only mentions", "answer in this thread again")
    await world.follow_up("who calls it now?", thread=thread)
    await settled(world, "Answer to", "answer only mentions", "again", "who calls it now?")


async def a_direct_message_goes_on_with_the_conversation(world: World) -> None:
    await world.direct("where is send?")
    await settled(world, "where is send?")
    await world.direct("and who calls it?")
    await settled(world, "where is send?", "who calls it?")
    assert len({conversation for _, conversation, _ in world.agent.asked}) == 1


async def an_edited_question_is_answered_again_in_place(world: World) -> None:
    message = await world.mention("where is send?")
    await settled(world, "Answer to: where is send?")
    await world.edit(message, "where is receive?")
    await settled(world, "Answer to: where is receive?")


async def a_question_edited_while_it_is_answered_gets_one_answer(world: World) -> None:
    world.agent.gate = asyncio.Event()
    message = await world.mention("where is send?")
    await world.agent.begun.acquire()
    await world.edit(message, "where is receive?")
    world.agent.gate.set()
    await settled(world, "Answer to: where is receive?")


async def a_question_edited_at_once_gets_one_answer(world: World) -> None:
    message = await world.mention("where is send?")
    await world.edit(message, "where is receive?")
    await settled(world, "Answer to: where is receive?")


async def a_question_deleted_at_once_leaves_nothing(world: World) -> None:
    message = await world.mention("where is send?")
    await world.delete(message)
    await world.mention("where is receive?")
    await settled(world, "Answer to: where is receive?")


async def a_deleted_question_has_its_answer_withdrawn(world: World) -> None:
    message = await world.mention("where is send?")
    await settled(world, "Answer to")
    await world.delete(message)
    await settled(world)


async def a_question_that_waits_for_a_person_is_replied_to(world: World) -> None:
    world.agent._route = "paused"
    thread = await world.mention("look it up on the web")
    await settled(world, "Answer to")
    world.agent._route = "fast_path"
    await world.mention("approve", thread=thread)
    await settled(world, "Answer to", "Answer to: approve")
    assert len(world.agent.replied) == 1


async def a_question_edited_while_it_waits_for_a_person_is_no_reply_to_itself(world: World) -> None:
    world.agent._route = "paused"
    message = await world.mention("look it up on the web")
    await settled(world, "Answer to")
    world.agent._route = "fast_path"
    await world.edit(message, "approve")
    await settled(world, "Answer to: approve")
    assert world.agent.replied == []


async def nothing_is_a_reply_to_a_question_deleted_while_it_waited(world: World) -> None:
    thread = await world.mention("where is send?")
    await settled(world, "Answer to")
    world.agent._route = "paused"
    waiting = await world.mention("look it up on the web", thread=thread)
    await settled(world, "Answer to", "Answer to: look it up")
    await world.delete(waiting)
    await settled(world, "Answer to")
    world.agent._route = "fast_path"
    await world.mention("approve", thread=thread, author="bob")
    await settled(world, "Answer to", "Answer to: approve")
    assert world.agent.replied == []


async def a_question_deleted_while_it_is_answered_leaves_nothing(world: World) -> None:
    world.agent.gate = asyncio.Event()
    message = await world.mention("where is send?")
    await world.agent.begun.acquire()
    await world.delete(message)
    await settled(world)


async def a_deleted_question_takes_no_other_answer_with_it(world: World) -> None:
    world.agent.gate = asyncio.Event()
    thread = await world.mention("where is send?")
    await world.agent.begun.acquire()
    await world.mention("where is receive?", thread=thread)
    await until(world, lambda said: len(said) == 2)
    await world.delete(thread)
    world.agent.gate.set()
    await settled(world, "Answer to: where is receive?")


async def the_word_stop_ends_the_answer(world: World) -> None:
    world.agent.gate = asyncio.Event()
    thread = await world.mention("where is send?")
    await world.agent.begun.acquire()
    await world.mention("stop", thread=thread)
    await until(world, lambda said: said == ["Stopped, as you asked."])


async def the_stop_button_ends_the_answer_for_its_asker(world: World) -> None:
    world.agent.gate = asyncio.Event()
    await world.mention("where is send?")
    await world.agent.begun.acquire()
    assert "Only the person who asked" in await world.press("stop", author="bob")
    await world.press("stop")
    await settled(world, "Stopped, as you asked.")


async def what_was_written_stays_when_it_is_stopped(world: World) -> None:
    world.agent.gate = asyncio.Event()
    world.agent.begins_with = "Events are sent by `send` [1], which retr"
    thread = await world.mention("where is send?")
    await world.agent.begun.acquire()
    await world.mention("stop", thread=thread)
    await until(world, lambda said: "Events are sent by `send`, which retr\n\n*Stopped, as you asked.*" in said)


async def an_opinion_is_kept(world: World) -> None:
    await world.mention("where is send?")
    await settled(world, "Answer to")
    assert "Thank you" in await world.press("good", author="bob")


async def a_command_is_carried_out(world: World) -> None:
    await world.mention("status")
    (said,) = await settled(world, "demo at 0123456")
    assert "1,234 chunks" in said
    assert world.agent.asked == []


async def why_tells_how_the_last_answer_came_about(world: World) -> None:
    thread = await world.mention("where is send?")
    await settled(world, "Answer to")
    await world.mention("why", thread=thread)
    _, said = await settled(world, "Answer to", "100 read, 20 written")
    assert "`src/session.py`" in said
    assert "Route: fast_path" in said


async def an_attached_log_is_read_with_the_question(world: World) -> None:
    log = "began\n" + "INFO paid\n" * 30_000 + "KeyError: 'cart'\n"
    await world.attach("why does this fail?", {"app.log": log.encode()})
    await settled(world, "Answer to: why does this fail?")
    (attached,) = world.agent.attached
    (text,) = attached.texts
    assert text.name == "app.log"
    assert (text.text[:6], text.text[-17:]) == ("began\n", "KeyError: 'cart'\n")
    assert len(text.text) < 201_000 < len(log)


async def a_file_without_a_word_is_a_question(world: World) -> None:
    await world.attach("", {"app.log": b"KeyError: 'cart'\n"})
    await settled(world, "Answer to:")
    assert [one.text for one in world.agent.attached[0].texts] == ["KeyError: 'cart'\n"]


async def an_image_that_nobody_sees_is_said_to_be_unseen(world: World) -> None:
    await world.attach("where is send?", {"screen.png": b"\x89PNG", "a.zip": b"PK\0\0", "x.mp4": b"film"})
    (said,) = await settled(world, "x.mp4` is not text, so I did not read it")
    assert "Answer to: where is send?" in said
    assert "screen.png` is an image that I couldn't see" in said
    assert "a.zip` is not text, so I did not read it" in said
    assert not world.agent.attached[0]


async def a_failure_becomes_a_sentence(world: World) -> None:
    world.agent.error = IndexError("list index out of range")
    await world.mention("where is send?")
    await settled(world, "An internal error occurred")


async def a_killed_answer_is_completed_in_the_same_message(world: World) -> None:
    world.agent.gate = asyncio.Event()
    await world.mention("where is send?")
    await world.agent.begun.acquire()
    await world.crash()
    world.agent.gate = None
    await world.begin()
    await settled(world, "Answer to: where is send?")
    assert len(world.agent.resumed) == 1


async def an_answer_cut_short_by_the_end_is_completed_by_the_next_process(world: World) -> None:
    world.agent.gate = asyncio.Event()
    await world.mention("where is send?")
    await world.agent.begun.acquire()
    await world.end()
    world.agent.gate = None
    await world.begin()
    await settled(world, "Answer to: where is send?")


async def after_two_kills_the_message_is_set_aside(world: World) -> None:
    world.agent.gate = asyncio.Event()
    await world.mention("where is send?")
    for _ in range(2):
        await world.agent.begun.acquire()
        await world.crash()
        await world.begin()
    await settled(world, "I could not finish this one")
    assert len(world.agent.asked) + len(world.agent.resumed) == 2


async def what_was_set_aside_is_answered_in_other_words(world: World) -> None:
    world.agent.gate = asyncio.Event()
    question = await world.mention("where is send?")
    for _ in range(2):
        await world.agent.begun.acquire()
        await world.crash()
        await world.begin()
    await settled(world, "I could not finish this one")
    world.agent.gate = None
    await world.edit(question, "which function sends?")
    await settled(world, "Answer to: which function sends?")


async def a_message_that_is_too_long_is_not_read(world: World) -> None:
    have(world, "shop", "website")
    question = await world.mention("where is send? " * 400)
    await settled(world, "That message is too long.")
    assert world.agent.asked == []
    await world.edit(question, "shop: where is send?")
    await settled(world, "Answer to: where is send?")


async def blanks_make_no_message_too_long(world: World) -> None:
    await world.mention(f"where is send?{' ' * 30_000}{chr(9) * 9_000}and who calls it?")
    await settled(world, "Answer to: where is send? and who calls it?")


async def nobody_is_pinged_by_an_answer(world: World) -> None:
    await world.mention("who is `@everyone`, @everyone, <!channel> and <@U1>?")
    (said,) = await settled(world, "Answer to")
    assert said.count("@everyone") == 1
    assert "<!channel>" not in said
    assert "<@U1>" not in said


def have(world: World, *names: str) -> None:
    """Let there be several repositories; `send` is in all of them."""
    world.repositories.indexes.clear()
    world.repositories.indexes.update({name: FakeIndex() for name in names})


async def an_unclear_question_is_answered_once_its_author_has_chosen(world: World) -> None:
    have(world, "shop", "website")
    await world.mention("where is send?")
    await settled(world, "Which repository do you mean?")
    assert world.agent.asked == []
    async with expect("a press to be of a message that is known"):  # which it is shortly after it is shown
        while "Only the person who asked" not in await world.choose("website", author="bob"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # nothing tells when
    await world.choose("website")
    (said,) = await settled(world, "website at 0123456")
    assert "Answer to: where is send?" in said
    assert "Which repository" not in said


async def what_else_a_question_may_mean_is_asked_by_a_button(world: World) -> None:
    world.agent.meanings = ("who uses `send`?", "what does `send` call?", "who wrote `send`?")
    await world.mention("send and its friends?")
    (said,) = await settled(world, "demo at 0123456")
    assert "something else" not in said
    world.agent.meanings = ()
    await world.choose("what does send call?")
    await settled(world, "Answer to: send and its friends?", "Answer to: what does `send` call?")
    assert len({conversation for _, conversation, _ in world.agent.asked}) == 1


async def a_choice_outlives_a_kill(world: World) -> None:
    have(world, "shop", "website")
    await world.mention("where is send?")
    await settled(world, "Which repository do you mean?")
    await world.end()
    await world.begin()
    await world.choose("website")
    await settled(world, "Answer to: where is send?")


async def a_choice_is_said_in_words_as_well(world: World) -> None:
    have(world, "shop", "website")
    thread = await world.mention("where is send?")
    await settled(world, "Which repository do you mean?")
    await world.follow_up("the website one, please", thread=thread)
    _, said = await settled(world, "Which repository", "Answer to: where is send?")
    assert "website at 0123456" in said


async def a_thread_stays_with_the_repository_of_its_first_question(world: World) -> None:
    have(world, "shop", "website")
    thread = await world.mention("in the website repo, where is send?")
    await settled(world, "Answer to: where is send?")
    await world.follow_up("and who calls it?", thread=thread)
    await settled(world, "website at", "website at")
    await world.follow_up("shop: who calls it there?", thread=thread)
    *_, said = await settled(world, "website at", "website at", "shop at")
    assert "the conversation stays with `website`" in said
    await world.follow_up("and its tests?", thread=thread)
    await settled(world, "website at", "website at", "shop at", "website at")


async def a_thread_stays_at_the_branch_that_it_names(world: World) -> None:
    release = "ab12cd3" + "0" * 33
    refs = FakeRefs({"refs/heads/main": "1" * 40, "refs/heads/release-2.1": release})
    world.repositories.refs["demo"] = refs
    refs.gate = asyncio.Event()
    thread = await world.mention("on release-2.1, where is send?")
    await wait_until(lambda: refs.pinned, "the branch is being indexed")
    await world.pass_time(5)
    await until(world, lambda said: "Indexing demo at release-2.1: reading files, 1 of 2" in "".join(said))
    refs.gate.set()
    line = "Read demo at release-2.1, commit ab12cd3, not the newest of main"
    (said,) = await settled(world, line)
    assert said.startswith("Answer to: where is send?")
    await world.follow_up("and who calls it?", thread=thread)
    await settled(world, line, line)
    await world.follow_up("on main, who calls it?", thread=thread)
    await settled(world, line, line, "demo at 0123456")
    await world.follow_up("and on relaese-2.1, who calls it?", thread=thread)
    *_, said = await settled(world, line, line, "demo at 0123456", "The nearest names are release-2.1")
    assert [names for *_, names in world.agent.asked] == [f"demo@{release}"] * 2 + ["demo"]


async def a_question_about_several_repositories_gets_one_answer(world: World) -> None:
    have(world, "shop", "website", "docs")
    await world.mention("across shop and website, where is send?")
    (said,) = await settled(world, "website at 0123456")
    assert said.count("Answer to: where is send?") == 1
    assert "Read shop at 0123456" in said
    assert [repositories for _, _, repositories in world.agent.asked] == ["shop, website"]


async def a_thread_about_several_repositories_stays_with_them(world: World) -> None:
    have(world, "shop", "website", "docs")
    thread = await world.mention("across shop and website, where is send?")
    await settled(world, "website at 0123456")
    await world.follow_up("and who calls it?", thread=thread)
    await settled(world, "website at 0123456", "website at 0123456")
    assert [repositories for _, _, repositories in world.agent.asked] == ["shop, website", "shop, website"]
    assert len({conversation for _, conversation, _ in world.agent.asked}) == 1


async def an_answer_about_several_repositories_is_stopped_at_once(world: World) -> None:
    have(world, "shop", "website")
    world.agent.gate = asyncio.Event()
    await world.mention("across shop and website, where is send?")
    await world.agent.begun.acquire()
    await world.press("stop")
    await settled(world, "Stopped, as you asked.")


async def one_of_several_repositories_that_cannot_be_read_is_named(world: World) -> None:
    have(world, "shop", "website")
    world.agent.fails = "website"
    await world.mention("across shop and website, where is send?")
    (said,) = await settled(world, "website is missing from this answer")
    assert "Answer to: where is send?" in said
    assert "The index is gone." in said
    assert "Read shop at 0123456" in said


async def a_killed_answer_about_several_repositories_is_completed_once(world: World) -> None:
    have(world, "shop", "website")
    world.agent.gate = asyncio.Event()
    await world.mention("in all repositories, where is send?")
    await world.agent.begun.acquire()
    await world.crash()
    world.agent.gate = None
    await world.begin()
    (said,) = await settled(world, "website at 0123456")
    assert said.count("Answer to: where is send?") == 1
    assert len(world.agent.asked) == 1
    assert len(world.agent.resumed) == 1


async def why_tells_how_the_repository_was_found(world: World) -> None:
    have(world, "shop", "website")
    thread = await world.mention("shop: where is send?")
    await settled(world, "Answer to")
    await world.mention("why", thread=thread)
    await settled(world, "Answer to", "Because: the question names it")


Promise = Callable[[World], Awaitable[None]]

# All of it, tried where it costs least: on the fake platform.
CONTRACT: tuple[Promise, ...] = (
    a_mention_gets_one_answer,
    the_answer_says_how_fresh_it_is,
    a_sign_of_life_comes_before_the_answer,
    an_attached_log_is_read_with_the_question,
    a_file_without_a_word_is_a_question,
    an_image_that_nobody_sees_is_said_to_be_unseen,
    the_first_places_are_linked_until_the_answer_begins,
    a_follow_up_is_answered_in_the_same_conversation,
    a_thread_that_others_join_is_left_to_them,
    whoever_asks_about_the_code_in_its_thread_is_answered,
    talk_in_a_thread_is_left_to_people,
    thanks_get_a_line_and_nothing_below_it,
    a_thread_without_citebot_is_left_alone,
    a_muted_thread_is_answered_only_when_asked,
    a_direct_message_goes_on_with_the_conversation,
    an_edited_question_is_answered_again_in_place,
    a_question_edited_while_it_is_answered_gets_one_answer,
    a_question_edited_at_once_gets_one_answer,
    a_deleted_question_has_its_answer_withdrawn,
    a_question_that_waits_for_a_person_is_replied_to,
    a_question_edited_while_it_waits_for_a_person_is_no_reply_to_itself,
    nothing_is_a_reply_to_a_question_deleted_while_it_waited,
    a_question_deleted_while_it_is_answered_leaves_nothing,
    a_question_deleted_at_once_leaves_nothing,
    a_deleted_question_takes_no_other_answer_with_it,
    the_word_stop_ends_the_answer,
    the_stop_button_ends_the_answer_for_its_asker,
    what_was_written_stays_when_it_is_stopped,
    an_opinion_is_kept,
    a_command_is_carried_out,
    why_tells_how_the_last_answer_came_about,
    a_failure_becomes_a_sentence,
    a_killed_answer_is_completed_in_the_same_message,
    an_answer_cut_short_by_the_end_is_completed_by_the_next_process,
    after_two_kills_the_message_is_set_aside,
    what_was_set_aside_is_answered_in_other_words,
    a_message_that_is_too_long_is_not_read,
    blanks_make_no_message_too_long,
    nobody_is_pinged_by_an_answer,
    an_unclear_question_is_answered_once_its_author_has_chosen,
    what_else_a_question_may_mean_is_asked_by_a_button,
    a_choice_outlives_a_kill,
    a_choice_is_said_in_words_as_well,
    a_thread_stays_with_the_repository_of_its_first_question,
    a_thread_stays_at_the_branch_that_it_names,
    a_question_about_several_repositories_gets_one_answer,
    a_thread_about_several_repositories_stays_with_them,
    an_answer_about_several_repositories_is_stopped_at_once,
    one_of_several_repositories_that_cannot_be_read_is_named,
    a_killed_answer_about_several_repositories_is_completed_once,
    why_tells_how_the_repository_was_found,
)

# The part that a transport can break, tried on each platform behind its own client library. All other promises are kept
# by the conversation core alone, which is handed the same messages and presses by every adapter.
BY_TRANSPORT: tuple[Promise, ...] = (
    a_mention_gets_one_answer,  # platforms deliver again, and Slack tells of a mention by two events
    the_first_places_are_linked_until_the_answer_begins,  # places are laid out, and taken away again
    an_attached_log_is_read_with_the_question,  # files are fetched with the platform's own token
    a_follow_up_is_answered_in_the_same_conversation,  # threads are named by other ids on each platform
    a_thread_that_others_join_is_left_to_them,  # a mention of somebody else is parsed
    a_direct_message_goes_on_with_the_conversation,  # it has no thread, and another kind of channel
    an_edited_question_is_answered_again_in_place,  # an edit is an event of its own
    a_deleted_question_has_its_answer_withdrawn,  # and so is a deletion
    a_question_deleted_while_it_is_answered_leaves_nothing,  # a stream or an edit is in progress
    the_stop_button_ends_the_answer_for_its_asker,  # presses, and what only one person is told
    what_was_written_stays_when_it_is_stopped,  # how a message that grows comes to its end
    an_opinion_is_kept,  # Slack has an element of its own for it
    a_killed_answer_is_completed_in_the_same_message,  # a message is found again by its nonce or metadata
    nobody_is_pinged_by_an_answer,  # each platform pings by other marks
    an_unclear_question_is_answered_once_its_author_has_chosen,  # buttons bear values
    what_else_a_question_may_mean_is_asked_by_a_button,  # several, each with its place
)

# The part that needs two processes to agree where one takes messages in and another one answers them.
BY_TWO_PROCESSES: tuple[Promise, ...] = (
    the_first_places_are_linked_until_the_answer_begins,
    a_follow_up_is_answered_in_the_same_conversation,
    a_question_edited_while_it_is_answered_gets_one_answer,
    a_question_deleted_while_it_is_answered_leaves_nothing,
    a_question_that_waits_for_a_person_is_replied_to,
    the_stop_button_ends_the_answer_for_its_asker,
    a_killed_answer_is_completed_in_the_same_message,
    an_unclear_question_is_answered_once_its_author_has_chosen,
    what_else_a_question_may_mean_is_asked_by_a_button,
)

# The part that one process reads from the database after another one, or an earlier turn, has written it.
BY_STORE: tuple[Promise, ...] = (
    a_mention_gets_one_answer,
    a_muted_thread_is_answered_only_when_asked,
    an_edited_question_is_answered_again_in_place,
    a_deleted_question_has_its_answer_withdrawn,
    an_opinion_is_kept,
    why_tells_how_the_last_answer_came_about,
    what_was_set_aside_is_answered_in_other_words,
    a_choice_outlives_a_kill,
    a_thread_stays_with_the_repository_of_its_first_question,
    a_killed_answer_about_several_repositories_is_completed_once,
)
