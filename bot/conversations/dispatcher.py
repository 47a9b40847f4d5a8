"""Receives people's actions on any platform: stores messages, has them answered, stops and withdraws answers."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Literal

from agent import concerns_answer, find_small_talk, is_statement, parse_error_name, parse_frames
from bot.access import Manners, find_manners
from bot.conversations.active_turns import BEAT_SECONDS, ActiveTurns
from bot.conversations.answer_course import NOT_YOURS, find_waiting_turn
from bot.conversations.goal_turns import DECIDED, is_goal_proposed
from bot.conversations.opened_reply import open_reply, share_answer
from bot.conversations.turn import ActiveTurn
from bot.conversations.turn_deps import TurnDeps
from bot.errors import ChatError, NotAllowed
from bot.messages import ButtonAction, ButtonPress, IncomingMessage, MessageKey, Place, fit_message
from bot.monitoring.observer import AnswerLoad
from bot.ports import AnswerJobs, ChatPlatform
from bot.repositories.choice_store import parse_choice_button
from bot.storage.inbox import InboxEntry
from bot.storage.living_answers import LivingAnswer
from bot.storage.message_states import HELD
from bot.storage.threads import ThreadStore
from bot.storage.turn_records import TurnRecord

log = logging.getLogger(__name__)

# Small talk. Talk about citebot itself, or a request for a joke, still gets its line.
_TALK = frozenset({"farewell", "greeting", "remark", "thanks", "wordless"})
_MAX_ASKED = 1_000  # characters in which a question to anybody says that it is one
_CODE = re.compile(r"`[^`\n]{0,500}`|https?://\S{1,2000}")  # a question mark in them asks nothing
_QUESTION_MARK = re.compile(r"[?？¿]")
_ASKS = re.compile(
    r"\W*(?:how|what|where|which|why|who|when|wie|wo|was|welche\w?|warum|wer|wann|comment|où|pourquoi|quel\w{0,3}|cómo"
    r"|dónde|qué|cuál|come|dove|perché|quale|como|onde|qual|hoe|waar|waarom|как|где|почему|какой)\b",
    re.IGNORECASE,
)


def is_talk(text: str) -> bool:
    """Whether a text asks for nothing: thanks, "hmm", "I'll look tomorrow", an emoji."""
    return find_small_talk(text) in _TALK


def is_question(text: str) -> bool:
    """Whether people would read a text as a question, or as an error to explain."""
    prose = _CODE.sub(" ", text)
    return bool(_QUESTION_MARK.search(prose) or _ASKS.match(prose) or parse_frames(text) or parse_error_name(text))


def is_for_anybody(text: str) -> bool:
    """Whether anyone's question below an answer is for citebot, and not for other people."""
    asked = text[:_MAX_ASKED]
    return is_question(asked) and concerns_answer(asked)


def is_left_to_people(message: IncomingMessage) -> bool:
    """Whether a message is for other people, although citebot listens there.

    In "thanks! @bob, what do you think?" only the thanks are for citebot, and need no answer.
    """
    if message.kind == "follow_up":
        return is_talk(message.text) or is_statement(message.text)
    if message.kind == "overheard":
        is_small_talk = find_small_talk(message.text) is not None  # a joke that nobody asked citebot for, too
        return message.mentions_others or is_small_talk or not is_question(message.text)
    if message.kind == "mention" and message.mentions_others:
        before = message.text.partition("@")[0]
        return any(map(str.isalnum, before)) and is_talk(before)
    return False


Receipt = Literal["new", "duplicate", "ignored"]

THANKS = "Thank you, noted."
NOT_WAITING = "Nobody is waiting for this any more."
MAX_TURNS_BACK = 20  # under which a button still asks something
# Actions on an answer that are no message to citebot, and their columns.
MARKS: Mapping[ButtonAction, str] = {"watch": "watch", "unwatch": "watch", "pin": "pinned", "unpin": "pinned"}
WATCHED = "I'll write here once, when a push changes what this answer says. Take the reaction away to stop that."
NOT_FOLLOWED = "I can only watch a finished answer that cites the newest code."
ALREADY_CHOSEN = "This was already answered, or is no longer available. Ask again."


class Conversations:
    """The conversation core. Adapters pass in people's actions, and may acknowledge one once the method has returned.

    Use it as `async with conversations.open():`, and pass in a platform's events within its
    `connect_platform`. `deps` are shared with all turns and other surfaces. After an `InboxError`
    nothing was stored: do not acknowledge.
    """

    def __init__(
        self,
        deps: TurnDeps,
        threads: ThreadStore,
        *,
        manners: Mapping[str, Manners] | None = None,
        max_concurrent: int = 8,
        jobs: AnswerJobs | None = None,
    ) -> None:
        self.deps = self._deps = deps
        self._threads = threads
        self._manners = manners or {}
        self.turns = ActiveTurns(deps, max_concurrent=max_concurrent, on_end=self._take_end, jobs=jobs)

    def open(self) -> AbstractAsyncContextManager[None]:
        """Answer messages for as long as the context is open."""
        return self.turns.open()

    def connect_platform(self, name: str, platform: ChatPlatform) -> AbstractAsyncContextManager[None]:
        """Answer on a platform: continue unfinished turns there; at the end, finish those in progress."""
        return self.turns.connect_platform(name, platform)

    async def receive(self, message: IncomingMessage) -> Receipt:
        """Store a message, and begin to answer it; ignore a message for others.

        Where citebot may answer nothing, only people who mention it get a reply. For a message that
        is too long, only its length is stored.
        """
        message = fit_message(message)
        if not await self._should_answer(message):
            return "ignored"
        if await self._deps.inbox.find(message.key) is not None:
            return "duplicate"
        message = self._mask(message)
        conversation = await self._threads.enter(message)
        message = await self._deps.chooser.complete_question(message, conversation)
        entry = await self._deps.inbox.store(message, conversation)
        if entry is None:
            return "duplicate"
        self.turns.begin(entry)
        return "new"

    def overhears(self, place: Place) -> bool:
        """Whether citebot answers questions in a channel without a mention."""
        return find_manners(self._manners, place) == "every question"

    async def _should_answer(self, message: IncomingMessage) -> bool:
        """Whether a message is for citebot, by the channel's reply mode, its thread, and its text."""
        unnamed = message.kind in {"follow_up", "overheard"}
        if message.kind == "overheard" and not self.overhears(message.place):
            return False
        if message.kind == "follow_up" and find_manners(self._manners, message.place) == "mentions":
            return False
        by_anybody = message.kind == "follow_up" and is_for_anybody(message.text)
        is_wanted = await self._threads.should_answer(message, by_anybody=by_anybody)
        if not is_wanted or (unnamed and not self._deps.access.is_open(message)):
            return False
        return not await self._is_left_to_people(message)

    async def _is_left_to_people(self, message: IncomingMessage) -> bool:
        """Whether a message asks for nothing; after a question from citebot, it may still be the reply."""
        if not is_left_to_people(message):
            return False
        thread = await self._threads.find(message.place)
        if thread is None:
            return True
        return await find_waiting_turn(self._deps.records, self._deps.inbox, thread.conversation) is None

    async def list_recent_channels(self, platform: str, workspace: str, *, most: int) -> Sequence[str]:
        """Return the channels of the last questions, newest first, which may have missed messages."""
        return await self._deps.inbox.channels(platform, workspace, most=most)

    async def handle_edit(self, message: IncomingMessage) -> None:
        """Answer an edited question again, in the same reply; the edit may have made it a question."""
        message = fit_message(message)
        entry = await self._deps.inbox.find(message.key)
        if entry is None:
            if message.kind not in {"follow_up", "overheard"}:
                await self.receive(message)
            return
        # First this: of several who hear of the edit, here or elsewhere, one continues.
        revised = await self._deps.inbox.revise(self._mask(message))
        if revised is None:
            return
        await self._deps.records.forget_question(entry.run_id)
        await self._forget_living(entry)
        is_elsewhere = entry.state in HELD and entry.owner not in {"", self._deps.inbox.owner}
        await self.turns.supersede(entry.id, keeps=revised.run_id)
        await self._deps.chooser.close(entry.run_id)
        # Another process may write to the reply until its next beat.
        self.turns.begin(revised, after=1.5 * BEAT_SECONDS if is_elsewhere else 0.0)

    async def handle_deletion(self, key: MessageKey) -> None:
        """Withdraw the answer to a question that its author deleted."""
        entry = await self._deps.inbox.find(key)
        if entry is None:
            return
        await self.turns.supersede(entry.id)
        await self._deps.chooser.close(entry.run_id)
        withdrawn = await self._deps.inbox.withdraw(key)
        if withdrawn is None:
            return
        await self._deps.records.forget_question(withdrawn.run_id)
        await self._forget_living(withdrawn)
        try:
            await open_reply(withdrawn, self.turns.transports[key.platform], self._deps.inbox).withdraw()
        except ChatError as error:
            log.warning("an answer was not withdrawn: %s", error)

    async def handle_press(self, press: ButtonPress) -> str:  # noqa: PLR0911 - one for each kind of press
        """Carry out a button under a reply; return a sentence for the person alone, which may be empty."""
        entry = await self._deps.inbox.find_by_reply(press.handle) or await self._find_told(press)
        if entry is None:
            return "That message is no longer available."
        if press.action in {"good", "bad"}:
            await self._deps.records.rate(entry.run_id, press.author, "good" if press.action == "good" else "bad")
            return THANKS
        if press.action in MARKS:
            return await self._mark_answer(entry, press)
        if press.is_reaction and press.action != "stop" and entry.state != "paused":
            return ""
        person = _make_reply(entry.message, press, self._deps.clock.now())
        if press.action in {"approve", "abort"} and is_goal_proposed(await self._find_newest(entry)):
            return await self._decide(press, person, entry)
        if press.action == "again":
            return await self._answer_again(entry, person)
        if press.action == "verify" or (press.action == "stop" and entry.message.goal_decision is not None):
            return await self._handle_press_of_runner(entry, press, person)
        is_allowed = press.action == "ask" or press.author == entry.message.author
        return await self._handle_own_press(entry, press) if is_allowed else NOT_YOURS

    async def _forget_living(self, entry: InboxEntry) -> None:
        if self._deps.living is not None:
            await self._deps.living.forget_run(entry.run_id)

    async def _mark_answer(self, entry: InboxEntry, press: ButtonPress) -> str:
        """Give an answer priority: anybody may pin it, and its asker watch it for as long as they may ask it."""
        living, column = self._deps.living, MARKS[press.action]
        if living is None or (column == "watch" and press.author != entry.message.author):
            return ""
        if press.action != "watch":
            await living.mark(entry.run_id, **{column: int(press.action == "pin")})
            return ""
        answer = await self._find_living(entry)
        if refused := self._refuse_living(answer, _make_reply(entry.message, press, self._deps.clock.now())):
            return NOT_FOLLOWED if answer is None else refused
        await living.mark(entry.run_id, watch=1)
        return WATCHED

    async def _find_told(self, press: ButtonPress) -> InboxEntry | None:
        """Return the message whose answer is outdated, given the note about it in its channel."""
        living, handle = self._deps.living, press.handle
        answer = await living.find(press.value) if living is not None and press.action == "again" else None
        entry = await self._deps.inbox.get(answer.entry) if answer is not None else None
        place = entry.message.place if entry is not None else None
        there = (handle.platform, handle.workspace, handle.channel)
        return entry if place is not None and (place.platform, place.workspace, place.channel) == there else None

    async def _find_living(self, entry: InboxEntry) -> LivingAnswer | None:
        """Return the followed answer to a message; None if it is not followed, or is being given again."""
        answer = await self._deps.living.find(entry.run_id) if self._deps.living is not None else None
        return answer if answer is not None and answer.run_id == entry.run_id else None

    def _refuse_living(self, answer: LivingAnswer | None, person: IncomingMessage) -> str:
        """Explain why a person may not see an answer; empty if they may ask about all of its repositories."""
        try:
            for repository in answer.commits if answer is not None else ():
                self._deps.access.check_repository(person, repository)
        except NotAllowed as error:
            return str(error)
        return "" if answer is not None else NOT_WAITING

    async def _answer_again(self, entry: InboxEntry, person: IncomingMessage) -> str:
        """Answer an outdated question again in the same reply, for anyone who may ask it."""
        answer = await self._find_living(entry)
        if answer is None or not answer.question:
            return NOT_WAITING
        if refused := self._refuse_living(answer, person):
            return refused
        asked = replace(entry.message, text=answer.question, anew=True)
        revised = await self._deps.inbox.revise(asked, run_id=entry.run_id)
        if revised is None:
            return NOT_WAITING
        self.turns.begin(revised)
        return ""

    async def _ask_meaning(self, entry: InboxEntry, press: ButtonPress) -> str:
        """Ask another meaning of the question, as the person who pressed."""
        kept = await self._deps.records.list_newest(entry.conversation, most=MAX_TURNS_BACK)
        meanings = next((one.record.meanings for one in kept if one.run_id == entry.run_id), ())
        number = int(found) if (found := press.value.rpartition(".")[2]).isdecimal() else len(meanings)
        if number >= len(meanings):
            return NOT_WAITING
        asked = _make_reply(entry.message, press, self._deps.clock.now())
        await self.receive(replace(asked, id=f"{asked.id}.{number}", text=meanings[number]))
        return ""

    async def _find_newest(self, entry: InboxEntry) -> TurnRecord | None:
        """Return the answer to a message, if it is the newest in its conversation."""
        if await self._deps.records.last_run(entry.conversation) != entry.run_id:
            return None
        return await self._deps.records.last(entry.conversation)

    async def _decide(self, press: ButtonPress, person: IncomingMessage, entry: InboxEntry) -> str:
        """Start or end the goal run proposed by a reply."""
        try:
            decided = await self._deps.goals.decide(press.action, person, entry.conversation, seen=press.value)
        except NotAllowed as error:
            return str(error)
        if decided is not None:
            self.turns.begin(decided)
        return "" if decided is not None else DECIDED

    async def _handle_press_of_runner(self, entry: InboxEntry, press: ButtonPress, person: IncomingMessage) -> str:
        """Handle a press that needs the right to run: verify an answer, or stop another person's run."""
        record = await self._find_newest(entry)
        goal = entry.message.goal_decision if press.action == "stop" else record.goal if record is not None else None
        if goal is None:
            return NOT_WAITING
        try:
            if press.action == "verify" or press.author != entry.message.author:
                self._deps.access.check_run(person, goal.repository)
        except NotAllowed as error:
            return str(error)
        if press.action == "stop":
            return await self._stop(entry)
        await self.receive(person)
        return ""

    async def _stop(self, entry: InboxEntry) -> str:
        return "" if await self.stop(entry.conversation) else "There is nothing to stop here."

    async def _handle_own_press(self, entry: InboxEntry, press: ButtonPress) -> str:
        """Handle an asker's own press, or one open to all."""
        if press.action == "ask":
            return await self._ask_meaning(entry, press)
        if press.action == "stop":
            return await self._stop(entry)
        if press.action == "choose":  # its buttons show before it has ended
            await self.turns.wait_for(entry.id)
        if press.action == "choose":
            return await self._choose(entry, press)
        if press.action == "share":
            transport = self.turns.transports[entry.message.place.platform]
            return await share_answer(entry, press, transport, self._deps)
        if entry.state == "withdrawn" or await self._deps.records.last_run(entry.conversation) != entry.run_id:
            return NOT_WAITING
        await self.receive(_make_reply(entry.message, press, self._deps.clock.now()))
        return ""

    async def _choose(self, entry: InboxEntry, press: ButtonPress) -> str:
        """Answer a question about the chosen repository, in the message that asked for the choice."""
        chosen = await self._deps.chooser.accept_choice(entry, parse_choice_button(press.value))
        if chosen is None:
            return ALREADY_CHOSEN
        chosen = _answer_by_press(replace(chosen, roles=press.roles, external=press.external), press)
        revised = await self._deps.inbox.revise(chosen, run_id=entry.run_id)
        if revised is not None:  # else another press was faster
            await self._deps.chooser.close(entry.run_id)
            self.turns.begin(revised)
        return ""

    def _mask(self, message: IncomingMessage) -> IncomingMessage:
        """Mask secrets in a message before any of it is stored, because people paste keys."""
        mask = self._deps.mask
        return replace(
            message,
            text=mask(message.text),
            author_name=mask(message.author_name),
            quoted=tuple(map(mask, message.quoted)),
        )

    async def stop(self, conversation: str, *, asked_like: IncomingMessage | None = None) -> bool:
        """Stop the answers in progress in a conversation, in this process and in others; False if there are none.

        With a message, also stop its author's other questions in the channel.
        """

        def is_meant(entry: InboxEntry) -> bool:
            return entry.conversation == conversation or (asked_like is not None and _is_like(entry, asked_like))

        here = await self.turns.stop(is_meant)
        return await self._deps.inbox.ask_to_stop(conversation, asked_like=asked_like) or here

    @property
    def load(self) -> AnswerLoad:
        """The number of questions in progress in this process, and in its queue."""
        return self.turns.load

    async def check_store(self) -> None:
        """Raise `InboxError` if messages cannot be stored."""
        await self._deps.inbox.check()

    async def _take_end(self, turn: ActiveTurn) -> None:
        """Begin the decided run; leave a thread without a request alone."""
        if turn.decided is not None:
            self.turns.begin(turn.decided)
        if turn.is_silent:
            await self._threads.leave(turn.entry.message)


def _is_like(entry: InboxEntry, message: IncomingMessage) -> bool:
    """Whether a person has asked something in the channel of their message."""
    asked = entry.message
    there = (asked.place.platform, asked.place.workspace, asked.place.channel, asked.author)
    return there == (message.place.platform, message.place.workspace, message.place.channel, message.author)


def _make_reply(question: IncomingMessage, press: ButtonPress, now: float) -> IncomingMessage:
    """Make the message that a button represents, as if its word had been written."""
    return replace(
        _answer_by_press(question, press),
        id=f"{press.handle.id}/{press.action}",
        text=press.action,
        author=press.author,
        order=None,
        kind="direct" if question.kind == "direct" else "mention",
        roles=press.roles,
        external=press.external,
        in_thread=question.kind == "direct",  # continues its conversation, however long ago that was
        sent_at=now,
    )


def _answer_by_press(question: IncomingMessage, press: ButtonPress) -> IncomingMessage:
    """Answer a question to the person who pressed a button, because the question's own address may have expired."""
    return replace(question, place=replace(question.place, line=press.line)) if press.line else question
