"""The ports of conversations: indexes, the agent, storage, and the platforms of replies."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

from indexer import Drift, IndexStatus, NamedRef, Progress, RefKind, RefreshReport

if TYPE_CHECKING:  # most questions of the command line need no database
    from agent import AgentEvent, Answer, Attachments, CodeSearch, GoalProposal, GoalRequest, RunPermit
    from bot.messages import (
        AttachedFile,
        Capabilities,
        IncomingMessage,
        MessageContent,
        MessageHandle,
        MessageKey,
        Place,
        ThreadMessage,
    )
    from bot.repositories.choice import RepositoryChoice
    from bot.repositories.choice_store import ConversationTopic, PendingQuestion
    from bot.storage.inbox import InboxEntry
    from bot.storage.message_states import EndedState
    from bot.storage.shareable_answers import ShareableAnswer
    from bot.storage.threads import ThreadState
    from bot.storage.turn_records import FeedbackEntry, KeptTurn, Opinion, TurnRecord


class RepositoryIndex(Protocol):
    """The index of one repository."""

    async def is_current(self) -> bool:
        """Return whether HEAD is the commit that is indexed."""

    async def refresh(self, *, full: bool = False, progress: Callable[[Progress], None] | None = None) -> RefreshReport:
        """Index HEAD. `progress` is called from another thread; what it raises stops the refresh."""

    async def pin(self) -> CodeSearch:
        """Hold the newest indexed commit; `NotIndexed` before there is one."""

    async def status(self) -> IndexStatus:
        """Describe what is indexed."""

    async def drift(self, commit: str, paths: Sequence[str]) -> Drift:
        """What happened since a commit, and to which of the paths."""

    async def sweep(self) -> None:
        """Drop what nobody reads any more; `StorageLocked` while a refresh is under way."""


class RefSource(Protocol):
    """The branches, tags, commits and pull requests of one repository, and the code at each."""

    @property
    def problem(self) -> str:
        """What is wrong with the branches that are kept, as a sentence; empty if all is well."""

    @property
    def page(self) -> str:
        """The address of the repository's page at its host; empty where that is not known."""

    async def find(self, written: str, kind: RefKind | None = None) -> NamedRef | None:
        """Find what a name means; None where the repository has nothing of that name and kind."""

    async def suggest(self, written: str) -> Sequence[str]:
        """Name what is called most like something that there is not."""

    async def pin(self, ref: NamedRef, progress: Callable[[Progress], None] | None = None) -> CodeSearch:
        """Hold the code at a ref, which is indexed first where it was not; `progress` is called from another thread.

        `UnknownRevision` where the ref is gone meanwhile.
        """

    async def read_file(self, commit: str, path: str) -> Sequence[str] | None:
        """Read the lines of a file at a commit; None where the commit is not here, or has no such file."""

    async def list_kept(self) -> Sequence[NamedRef]:
        """List the branches beside the followed one whose newest commits are always indexed."""

    async def refresh_kept(self) -> Sequence[NamedRef]:
        """Index the newest commits of these branches, and return them; raises the first `IndexerError` at the end."""

    async def sweep(self) -> None:
        """Delete what was used least."""


class Assistant(Protocol):
    """Answers questions, and remembers the conversation of a thread."""

    def ask(self, question: str, *, thread: str, repositories: Sequence[str] = ()) -> AsyncIterator[AgentEvent]:
        """Stream what happens on the way to an answer; the last event carries the `Answer`."""

    async def forget(self, thread: str) -> None:
        """Forget the conversation of the thread."""


class Repositories(Protocol):
    """The repositories that can be asked about, by name; the first is the default."""

    def list_names(self) -> Sequence[str]:
        """Name them all."""

    async def status(self, name: str) -> IndexStatus:
        """Describe what is indexed of a repository."""

    async def drift(self, name: str, commit: str, paths: Sequence[str]) -> Drift:
        """What happened in a repository since a commit, and to which of the paths."""

    async def refresh(
        self, name: str, *, full: bool = False, progress: Callable[[Progress], None] | None = None
    ) -> RefreshReport:
        """Index the newest commit of a repository; `progress` is called in the event loop."""

    async def pin_existing(self, name: str) -> CodeSearch:
        """Hold what is indexed of a repository by now, and begin nothing; `NotIndexed` where that is nothing."""


class AnswerJobs(Protocol):
    """Answers that were asked for, each a job of whichever process works on them; methods raise `InboxError`.

    A job may be carried out twice, and one of a message that is over means nothing: who works on it asks the inbox.
    """

    async def ask_for_answer(self, entry_id: int, conversation: str, *, is_command: bool = False) -> None:
        """Have a message answered after those of its conversation that were asked for before; a command waits for none.

        What waits already is not asked for twice; what is under way is, and comes once more.
        """

    def work_on_answers(
        self, answer: Callable[[int], Awaitable[None]], *, at_once: int | None = None
    ) -> AbstractAsyncContextManager[None]:
        """Call `answer` with one entry after the other while the context is open, `at_once` of them at most.

        At the end, what is under way is cancelled, and waits for the next worker, like all that was not begun.
        """


RefreshCourse = AsyncIterator[Progress | RefreshReport]
RefreshWork = Callable[[str, bool, Callable[[Progress], None]], Awaitable[RefreshReport]]


class RefreshJobs(Protocol):
    """Refreshes that were asked for: of a repository one at a time, and one more at most waits."""

    async def ask_for_refresh(self, repository: str, *, full: bool = False, join: bool = False) -> RefreshCourse:
        """Have a repository refreshed, and return the course of that, for whoever wants to follow it.

        The refresh begins after the call, so that no push is lost; who asks before it has begun gets the same one,
        which is full if anybody wants that. With `join`, one that is under way will do, if it is as full as asked for.
        The course is the progress from now on, some of which may be missing, and at last the report; it raises the
        `IndexerError` with which the refresh failed.
        """

    async def join_refresh(self, repository: str) -> RefreshCourse | None:
        """Return the course of the refresh that waits or is under way; None where there is none."""

    def work_on_refreshes(
        self, refresh: RefreshWork, *, at_once: int | None = None
    ) -> AbstractAsyncContextManager[None]:
        """Call `refresh` with a repository, whether it is to be full, and what takes its progress, from any thread.

        At the end, what is under way is cancelled, and waits for the next worker, like all that was not begun.
        """


class Answerer(Protocol):
    """The agent as conversations need it: runs that have names, and can be taken up again or stopped."""

    def ask(
        self,
        question: str,
        *,
        thread: str,
        repositories: Sequence[str] = (),
        run_id: str | None = None,
        permit: RunPermit | None = None,
        attachments: Attachments = ...,
    ) -> AsyncIterator[AgentEvent]:
        """Stream what happens on the way to an answer from all of the repositories; the last event carries it.

        Raises `CheckpointOvertaken` where another process goes on with the conversation, or the permit says no.
        """

    def resume(
        self, run_id: str, *, thread: str, reply: str | None = None, permit: RunPermit | None = None
    ) -> AsyncIterator[AgentEvent]:
        """Go on with a run that was broken off; `UnknownRun` where there is none, and the question may be asked."""

    async def stop(self, run_id: str) -> bool:
        """End a run within two seconds; False if it is not under way."""

    async def forget(self, thread: str, *, run_id: str | None = None) -> None:
        """Forget the conversation of the thread; with a run, only where that is its newest."""

    async def remember(self, question: str, answer: Answer, *, thread: str, run_id: str) -> None:
        """Remember as a turn of the conversation what a goal run has said there; the same run once."""


class GoalRuns(Protocol):
    """Works towards goals in repositories, each run in a thread of its own."""

    async def propose(self, request: GoalRequest) -> GoalProposal:
        """Say what a run would be; nothing runs. `AgentError` where the request can come to nothing."""

    def start(self, proposal: GoalProposal, *, thread: str, run_id: str | None = None) -> AsyncIterator[AgentEvent]:
        """Begin what was proposed and approved; before the last event, the answer, `goal_end` has the verdict."""

    def resume(self, run_id: str, *, thread: str, reply: str | None = None) -> AsyncIterator[AgentEvent]:
        """Go on with a run that was broken off or waits for a person; `UnknownRun` where there is none."""

    async def stop(self, run_id: str) -> bool:
        """End a run within two seconds; False if it is not under way."""

    async def forget(self, thread: str) -> None:
        """Forget a run that is over."""


class ChatPlatform(Protocol):
    """One chat platform, as replies see it. All methods raise `ChatError`s and nothing else."""

    @property
    def capabilities(self) -> Capabilities:
        """What the platform can do."""

    async def post(self, place: Place, content: MessageContent, *, nonce: str) -> MessageHandle:
        """Send a message. `nonce` (at most 25 characters) goes with it, so that `find` can tell that it was sent."""

    async def edit(self, handle: MessageHandle, content: MessageContent) -> None:
        """Change all of a message; a stream that was left open in it is closed first."""

    async def withdraw(self, handle: MessageHandle) -> None:
        """Delete a message; one that is gone already is no error. `EditRefused` where that is not allowed."""

    async def find_reply(self, place: Place, nonce: str) -> MessageHandle | None:
        """Find the message that was sent with a nonce; asked after a crash, or where a call got no answer."""

    async def open_stream(self, place: Place, content: MessageContent, *, nonce: str) -> LiveStream:
        """Begin a message that text can be added to; `StreamRefused` where there is no such thing."""

    async def read_thread(self, place: Place, *, before: str, limit: int) -> Sequence[ThreadMessage]:
        """Read the newest messages of a thread before the one named, oldest first."""

    async def read_file(self, file: AttachedFile, *, most: int) -> bytes:
        """Fetch a file that came with a message; `FileUnreadable` where that is refused, or it has more bytes."""

    async def hint(self, place: Place, status: str) -> None:
        """Show that work is under way in some way that is no message: typing, a status. Empty: it is over."""


class LiveStream(Protocol):
    """A message on a platform that takes text piece by piece. `StreamGone` means that the piece did not arrive."""

    @property
    def handle(self) -> MessageHandle:
        """The message."""

    async def append(self, text: str, content: MessageContent) -> None:
        """Add text, which may be empty; of the content only the status and the places found are shown."""

    async def finish(self, text: str, content: MessageContent) -> None:
        """Add the last text and end the stream; of the content only footer and buttons are shown."""


class ThreadMembership(Protocol):
    """Which threads citebot takes part in, and which conversation each belongs to."""

    async def should_answer(self, message: IncomingMessage, *, by_anybody: bool = False) -> bool:
        """Whether a message is to be answered; notes who has written in a thread that citebot takes part in.

        A message that names nobody is, where citebot takes part, is not muted, and only the author has written lately;
        or who has does not matter for what the message asks.
        """

    async def enter(self, message: IncomingMessage) -> str:
        """Take part in the thread of a message to be answered; return the conversation that it belongs to.

        A direct message outside threads goes on with the conversation of the last one for half an hour.
        """

    async def leave(self, message: IncomingMessage) -> None:
        """Take part in the thread of a message no more."""

    async def find(self, place: Place) -> ThreadState | None:
        """Return a thread that is known."""

    async def forget_old(self, before: float) -> int:
        """Drop the threads in which citebot was last asked before a time, but not what a channel chose; count them."""


class ThreadSettings(Protocol):
    """What people have set for a thread, or for the channel that it is in."""

    async def mute(self, message: IncomingMessage, *, muted: bool) -> None:
        """Mute citebot in a thread until it is addressed by a command, or unmute it."""

    async def use(self, message: IncomingMessage, repository: str) -> None:
        """Ask about a repository from now on in this thread, or in this channel where it is no thread."""

    async def repository(self, message: IncomingMessage) -> str | None:
        """Return the repository in use in the thread of a message, else in its channel."""


class TurnRecords(Protocol):
    """How the answers of finished turns came about."""

    async def keep(self, run_id: str, conversation: str, record: TurnRecord, *, held: InboxEntry | None = None) -> bool:
        """Keep a turn; a run that was taken up again replaces what was kept of it.

        With the message that it answers, nothing is kept, and this is False, once another process has claimed that, or
        it was edited or settled.
        """

    async def last(self, conversation: str) -> TurnRecord | None:
        """Return the newest turn of a conversation."""

    async def list_newest(self, conversation: str, *, most: int) -> Sequence[KeptTurn]:
        """Return the newest turns of a conversation, the last one first."""

    async def last_run(self, conversation: str) -> str:
        """Name the run of the newest turn of a conversation; empty if none is kept."""

    async def recent(self, *, since: float, most: int) -> Sequence[KeptTurn]:
        """Return the turns since a time, the newest first, and no more than so many."""

    async def forget(self, conversation: str) -> None:
        """Drop the turns of a conversation; opinions stay."""

    async def forget_old(self, before: float) -> int:
        """Drop the turns and the opinions of before a time; return how many opinions."""


class Ratings(Protocol):
    """What people thought of answers."""

    async def rate(self, run_id: str, person: str, opinion: Opinion) -> None:
        """Keep what a person thinks of an answer; a later opinion replaces the earlier one."""

    async def feedback(self, *, since: float = 0.0) -> Sequence[FeedbackEntry]:
        """Return the opinions given since a time, oldest first; their records as far as they are kept."""


class MessageInbox(Protocol):
    """Every message from before it is acknowledged until it is forgotten; each is handled once, by one process.

    `owner` is the name of this process. What may be done to a message is in `bot.storage.message_states`; a holder that
    has lost its lease changes nothing any more.
    """

    owner: str

    async def store(self, message: IncomingMessage, conversation: str) -> InboxEntry | None:
        """Store a message; None if it was delivered before."""

    async def revise(self, message: IncomingMessage, *, run_id: str = "") -> InboxEntry | None:
        """Put an edited message back to the beginning, under a new run; None if it is not known under the one given."""

    async def find(self, key: MessageKey) -> InboxEntry | None:
        """Find a message."""

    async def channels(self, platform: str, workspace: str, *, most: int) -> Sequence[str]:
        """Return where something was asked lately, the last one first."""

    async def find_by_reply(self, handle: MessageHandle) -> InboxEntry | None:
        """Find the message that one of citebot's own is the reply to, or a part of it."""

    async def get(self, entry_id: int) -> InboxEntry | None:
        """Return a message by its number."""

    async def count_before(self, entry: InboxEntry) -> int:
        """Count the messages that are answered before one, as far as any of them still waits; else 0."""

    async def claim(self, entry_id: int, *, beside: bool = False, risky: bool = True) -> InboxEntry | None:
        """Take a message for this process; None if another process has it, or its conversation, or it is over.

        A message `beside` a conversation, such as a command, is taken whoever has the conversation. Where it is not
        `risky`, because nothing reads it, a death of this process is not held against it.
        """

    async def begin_run(self, entry: InboxEntry) -> bool:
        """Note that the run of a message begins; False if it was edited, or taken by another process, meanwhile."""

    async def is_current(self, conversation: str, run_id: str) -> bool:
        """Whether the message of a run was neither edited nor deleted since; also where none is known."""

    async def list_unfinished(self) -> Sequence[InboxEntry]:
        """Return the messages that no process is at, oldest first."""

    async def owners(self) -> Sequence[str]:
        """Name the processes that hold messages."""

    async def take_from(self, owner: str) -> None:
        """Free everything that a process held, once it is known to have ended."""

    async def take_expired(self) -> None:
        """Free what other processes held whose leases have run out."""

    async def excuse(self, held: Collection[InboxEntry]) -> None:
        """Note that this process ends in order: if it is killed meanwhile, these messages are not the cause."""

    async def note_handles(self, entry: InboxEntry, handles: Sequence[MessageHandle]) -> bool:
        """Store which messages the reply consists of; False if the message was edited, or claimed by another process.

        As long as nobody has claimed it anew, also what was posted too late can be noted.
        """

    async def settle(self, entry: InboxEntry, state: EndedState) -> bool:
        """Note that a message is over; False if it was edited, or taken by another process, meanwhile."""

    async def withdraw(self, key: MessageKey) -> InboxEntry | None:
        """Note that a message was deleted by its author; None if it is not known."""

    async def release(self, entry: InboxEntry) -> None:
        """Hand a message over to whichever process comes next; this was no try."""

    async def hand_on(self, entry: InboxEntry) -> None:
        """Leave a message whose reply was begun to the process that answers it."""

    async def postpone(self, entry: InboxEntry, seconds: float) -> None:
        """Let a message be tried again after a while."""

    async def ask_to_stop(self, conversation: str, *, asked_like: IncomingMessage | None = None) -> bool:
        """Ask the other processes to stop what they answer in a conversation; False if they answer nothing."""

    async def beat(self, held: Collection[InboxEntry]) -> tuple[frozenset[str], frozenset[str]]:
        """Renew the leases of messages; return the runs that this process still holds, and those asked to stop."""

    async def still_holds(self, entry: InboxEntry, *, is_answered: bool = False) -> bool:
        """Whether a message is still this process's to end; `InboxError` where others may have taken it unseen.

        Deaths are not held against a message whose answer is complete.
        """

    async def check(self) -> None:
        """Write something that means nothing; raises `InboxError` if nothing can be stored."""

    async def forget_old(self, before: float) -> int:
        """Drop what was over before a time; return how many messages."""


class RepositoryChoices(Protocol):
    """Which repositories conversations are about, how turns were routed, and which questions wait for a choice."""

    async def topic(self, conversation: str) -> ConversationTopic | None:
        """Return what a conversation is about."""

    async def set_topic(self, conversation: str, repositories: Sequence[str]) -> None:
        """Note what a conversation is about from now on."""

    async def recent(self, channel: str) -> Sequence[str]:
        """Return what the conversations whose keys begin so were about, newest first."""

    async def decide(self, run_id: str, conversation: str, route: RepositoryChoice) -> None:
        """Store the choice of a turn, so that it is the same after a restart; the question is not stored."""

    async def find_route(self, run_id: str) -> RepositoryChoice | None:
        """Return the route of a turn that was begun before, without its question."""

    async def together(self, conversation: str) -> Sequence[str]:
        """Return the repositories that questions of a conversation were about together with others."""

    async def ask_back(self, conversation: str, author: str, asked: PendingQuestion) -> None:
        """Keep a question until its author has chosen which repository it is about."""

    async def find_pending_question(self, run_id: str) -> PendingQuestion | None:
        """Return a question that waits for its author's choice."""

    async def last_asked_back(self, conversation: str, author: str) -> PendingQuestion | None:
        """Return the newest question of a person in a conversation that waits for a choice."""

    async def close(self, run_id: str) -> None:
        """Drop what is kept of a turn that is over."""

    async def forget(self, conversation: str) -> None:
        """Drop what is kept of a conversation."""

    async def forget_old(self, before: float) -> None:
        """Drop what is older than a time."""


class SharedAnswers(Protocol):
    """Answers that only their askers have seen, by runs, for a day."""

    async def keep(self, run_id: str, conversation: str, answer: ShareableAnswer) -> None:
        """Keep an answer."""

    async def take(self, run_id: str) -> ShareableAnswer | None:
        """Take an answer to share it, as one process alone can; None where it was shared, or is not kept."""

    async def is_shared(self, run_id: str) -> bool:
        """Whether an answer was taken within the last day."""

    async def forget(self, conversation: str) -> None:
        """Drop the answers of a conversation."""


class Leases(Protocol):
    """What one process does for all of them, such as watching a repository, by names."""

    async def take(self, name: str, seconds: float) -> int | None:
        """Take a lease that nobody holds, or this process, for so long; return its token, None if it is held."""

    async def renew(self, name: str, token: int, seconds: float) -> bool:
        """Hold a lease for so long from now; False if another process has taken it meanwhile."""

    async def release(self, name: str, token: int) -> None:
        """Give a lease back; one that another process has taken stays with that."""


class QuestionLimiter(Protocol):
    """Counts what each person asks, across restarts and processes."""

    async def count(self, message: IncomingMessage) -> None:
        """Count a question; raises `LimitReached` for one too many, `SilentlyThrottled` after as many refusals."""

    async def count_command(self, message: IncomingMessage) -> None:
        """Count a command; raises `SilentlyThrottled` at several times as many as questions may be asked."""

    async def count_lookup(self, message: IncomingMessage) -> None:
        """Count a lookup in the code by a program; raises `LimitReached` at many times as many as questions."""

    async def forget_old(self) -> None:
        """Drop the counts of minutes and days that are over."""
