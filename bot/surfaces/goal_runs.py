"""Goal runs outside chats: proposed, decided and run exactly as those in chats.

Each is a message on a separate platform (`SurfaceReplies`), in its own conversation. So the inbox
resumes it after a crash, `ChatGoals` decides who may approve it, and it shares the chats' places
and limits.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from bot.conversations.dispatcher import Conversations
from bot.conversations.goal_turns import DECIDED
from bot.errors import (
    FileUnreadable,
    InboxError,
    NotAllowed,
    NotProposed,
    PlatformUnreachable,
    StreamRefused,
    UnknownGoalRun,
)
from bot.messages import (
    SURFACE,
    AttachedFile,
    Capabilities,
    GoalOrder,
    MessageContent,
    MessageHandle,
    MessageKey,
    Place,
    ThreadMessage,
)
from bot.ports import LiveStream
from bot.storage.answer_records import ShareableAnswer, ShareableAnswerStore
from bot.storage.inbox import InboxEntry
from bot.storage.message_states import OPEN
from bot.surfaces.ask_events import SurfaceValue
from bot.surfaces.code_lookups import choose_visible
from bot.surfaces.principals import Principal

MAX_TASK_CHARACTERS = 4_000
MAX_WORDS = 50  # of one argument
LOOK_SECONDS = 0.5  # from one look at a run to the next: another process may be at it
MAX_LISTED = 50
MAX_SEARCHED = 500  # of the newest runs, for those that a person may see
UNKNOWN = "There is no goal run of this name, or you have no access to it."
Arguments = Mapping[str, str | list[str]]
Decision = Literal["approve", "abort"]
GoalRunState = Literal["preparing", "proposed", "waiting", "running", "ended"]


class RunPatch(SurfaceValue):
    """The patch of a goal run, with secrets masked, for `git apply`."""

    name: str
    text: str


class GoalRun(SurfaceValue):
    """A goal run as far as it has come.

    It is `proposed` until somebody decides and names the `proposal` that they saw. `text` is safe
    Markdown: the proposal, then the progress, finally the verdict or the reason why there is none;
    `status` is the present activity. `achieved` says at the end whether the goal was reached, if
    there is a verdict. `may_approve` and `may_abort` concern the requester.
    """

    id: str
    state: GoalRunState
    proposal: str
    person: str
    repository: str
    commit: str = ""
    text: str = ""
    status: str = ""
    patch: RunPatch | None = None
    achieved: bool | None = None
    may_approve: bool = False
    may_abort: bool = False


class TeamGoalRuns:
    """The goal runs outside chats, each visible to its asker, and to people who may start runs there."""

    def __init__(self, conversations: Conversations) -> None:
        self._conversations = conversations
        self._deps = conversations.deps

    @property
    def is_on(self) -> bool:
        """Whether goal runs are available here."""
        return self._deps.goals.runs is not None

    async def begin(
        self,
        principal: Principal,
        goal: str,
        task: str,
        arguments: Arguments,
        *,
        repository: str | None = None,
        name: str = "",
    ) -> str:
        """Propose a run, and return its name; a known name is not proposed again.

        It counts as a question. Raises `NotAllowed` if there are no runs, or no such repository.
        """
        deps, person, name = self._deps, principal.write(), name or uuid.uuid4().hex
        await deps.counter.count(person)
        if not self.is_on:
            raise NotAllowed(deps.goals.problem)
        visible = deps.access.list_visible(person, deps.repositories.list_names())
        chosen = choose_visible(repository, visible)
        filled = {"claim": task} if goal == "claim" and not arguments else arguments
        order = GoalOrder(
            goal=goal, arguments={key: _mask(value, deps.mask) for key, value in filled.items()},
            task=deps.mask(task), repository=chosen,
        )  # fmt: skip
        place = Place(platform=SURFACE, workspace="", channel="", thread=name)
        message = replace(person, place=place, id=name, author=principal.key, about=(chosen,), order=order)
        stored = await deps.inbox.store(message, place.key())
        if stored is not None:
            self._conversations.turns.begin(stored)
        return name

    async def find(self, principal: Principal, name: str) -> GoalRun:
        """Return the present state of a run; `UnknownGoalRun` if the person may see none."""
        return await self._describe(principal, await self._find_entry(principal, name))

    async def follow(self, principal: Principal, name: str) -> AsyncGenerator[GoalRun, None]:
        """Yield a run now and after every change, until it has ended; access is checked each time."""
        shown: GoalRun | None = None
        while shown is None or shown.state != "ended":
            if shown is not None:
                await self._deps.clock.sleep(LOOK_SECONDS)
            run = await self.find(principal, name)
            if run != shown:
                yield run
            shown = run

    async def list_visible(self, principal: Principal) -> Sequence[GoalRun]:
        """Return the newest runs that a person may see."""
        newest = await self._deps.inbox.list_newest(SURFACE, most=MAX_SEARCHED)
        visible = [entry for entry in newest if self._may_see(principal, entry)][:MAX_LISTED]
        return [await self._describe(principal, entry) for entry in visible]

    async def decide(self, principal: Principal, name: str, decision: Decision, proposal: str) -> GoalRun:
        """Start a proposed run, or end it, even while it is in progress.

        Raises `NotAllowed` if the person may not, and `NotProposed` if they have not seen the
        current proposal.
        """
        entry = await self._find_entry(principal, name)
        person = replace(principal.write(), place=entry.message.place, author=principal.key)
        if decision == "abort" and entry.message.goal_decision is not None:
            if person.author != entry.message.author:
                self._deps.access.check_run(person, entry.message.about[0])
            await self._conversations.stop(entry.conversation)
            return await self.find(principal, name)
        decided = await self._deps.goals.decide(decision, person, entry.conversation, seen=proposal)
        if decided is None:
            raise NotProposed(DECIDED)
        self._conversations.turns.begin(decided)
        return await self._describe(principal, decided)

    async def _find_entry(self, principal: Principal, name: str) -> InboxEntry:
        entry = await self._deps.inbox.find(MessageKey(platform=SURFACE, workspace="", channel="", message=name))
        if entry is None or not self._may_see(principal, entry):
            raise UnknownGoalRun(UNKNOWN)
        return entry

    def _may_see(self, principal: Principal, entry: InboxEntry) -> bool:
        """Whether a person may see a run: its asker, or people who may start it, if they may see the code."""
        access, person, (repository,) = self._deps.access, principal.write(), entry.message.about
        is_concerned = entry.message.author == principal.key or access.may_run(person, repository)
        return is_concerned and bool(access.list_visible(person, [repository]))

    async def _describe(self, principal: Principal, entry: InboxEntry) -> GoalRun:
        """Describe a run by its reply, which is final once the inbox has settled it."""
        deps, message, (repository,) = self._deps, entry.message, entry.message.about
        record = await deps.records.last(entry.conversation)
        shown = [await deps.shareable.read(handle.id) for handle in entry.handles]
        content = next(filter(None, shown), MessageContent())
        state = _name_state(entry)
        return GoalRun(
            id=message.id, state=state, proposal=entry.run_id, person=message.author, repository=repository,
            commit=record.commit if record is not None else "",
            text="\n\n".join(filter(None, (content.text, content.footer))), status=content.status,
            patch=RunPatch(name=content.file.name, text=content.file.text) if content.file is not None else None,
            achieved=record.found if record is not None and record.route == "goal" and state == "ended" else None,
            may_approve=state == "proposed" and deps.access.may_run(principal.write(), repository),
            may_abort=state in {"proposed", "waiting", "running"},  # anyone who may see it may
        )  # fmt: skip


def _name_state(entry: InboxEntry) -> GoalRunState:
    """Describe the state of a run."""
    if entry.state == "paused":
        return "proposed"
    if entry.state not in OPEN:
        return "ended"
    if entry.message.goal_decision is None:
        return "preparing"
    return "running" if entry.state == "running" else "waiting"


def _mask(value: str | list[str], mask: Callable[[str], str]) -> str | list[str]:
    return mask(value) if isinstance(value, str) else [*map(mask, value)]


class SurfaceReplies:
    """A platform without people: a message is a row, which the API and the page read, in whichever process."""

    capabilities = Capabilities(max_units=1_000_000, utf16=False, rates={}, edit_every=0.5)

    def __init__(self, contents: ShareableAnswerStore) -> None:
        self._contents = contents

    async def post(self, place: Place, content: MessageContent, *, nonce: str) -> MessageHandle:
        """Keep a message under its nonce."""
        handle = place.make_handle(nonce)
        await self.edit(handle, content)
        return handle

    async def edit(self, handle: MessageHandle, content: MessageContent) -> None:
        """Store the new content of a message."""
        place = Place(platform=SURFACE, workspace="", channel="", thread=handle.thread)
        try:
            await self._contents.keep(handle.id, place.key(), ShareableAnswer(content=content, repositories=()))
        except InboxError as error:
            raise PlatformUnreachable(str(error)) from error

    async def withdraw(self, handle: MessageHandle) -> None:
        """Drop a message."""
        try:
            await self._contents.drop(handle.id)
        except InboxError as error:
            raise PlatformUnreachable(str(error)) from error

    async def find_reply(self, place: Place, nonce: str) -> MessageHandle | None:
        """Find the message of a nonce."""
        try:
            is_there = await self._contents.read(nonce) is not None
        except InboxError as error:
            raise PlatformUnreachable(str(error)) from error
        return place.make_handle(nonce) if is_there else None

    async def open_stream(self, place: Place, content: MessageContent, *, nonce: str) -> LiveStream:  # noqa: ARG002
        """Refuse: a row is replaced as a whole."""
        raise StreamRefused("There are no streams here.")

    async def read_thread(self, place: Place, *, before: str, limit: int) -> Sequence[ThreadMessage]:  # noqa: ARG002
        """Return nothing: there is no thread around a goal run."""
        return ()

    async def read_file(self, file: AttachedFile, *, most: int) -> bytes:  # noqa: ARG002
        """Refuse: nothing comes with a request."""
        raise FileUnreadable("There are no files here.")

    async def hint(self, place: Place, status: str) -> None:
        """Show nothing: the message has the status."""
