"""The code that a question is about: its repositories and their commits, chosen, and indexed where they are not."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from agent import CodeSearch, is_bare_question, is_verify_request, read_quotes
from bot.access import AccessPolicy
from bot.conversations.turns.attached_files import ReadAttachments, read_attachments
from bot.conversations.turns.thread_context import read_thread_quotes
from bot.messages import LONGEST_QUOTED
from bot.ports import ChatPlatform, Repositories
from bot.repositories.choice import AmbiguousRepository, RepositoryChoice
from bot.repositories.chooser import RepositoryChooser
from bot.repositories.names import pin_name
from bot.repositories.ref_chooser import RefChoice, RefChooser, read_ref
from bot.storage.inbox import InboxEntry
from bot.storage.turn_records import TurnRecord, TurnRecordStore
from indexer import IndexDamaged, IndexerError, NamedRef, NotIndexed, Progress

ShowProgress = Callable[[str, Progress, str], None]  # of a name, and why it is indexed at all

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class CodeDeps:
    """What it takes to find out which code a question is about."""

    repositories: Repositories
    chooser: RepositoryChooser
    records: TurnRecordStore
    access: AccessPolicy
    hosts: Collection[str]
    refs: RefChooser = field(default_factory=RefChooser)
    takes_images: bool = False
    mask: Callable[[str], str] = str  # takes secrets out of what people write, and of the sentences about errors


class QuestionCode:
    """The code that one question is about, as far as it is known; only the methods here set its fields.

    `attached` is what came with the question, `quotes` the thread that citebot was called into with it.
    """

    def __init__(self, entry: InboxEntry, platform: ChatPlatform, deps: CodeDeps, show: ShowProgress) -> None:
        self.repositories: tuple[str, ...] = ()
        self.ref: NamedRef | None = None
        self.next_ref: NamedRef | None = None  # where the conversation continues
        self.attached = ReadAttachments()
        self.quotes: Sequence[str] = ()
        self._entry = entry
        self._platform = platform
        self._deps = deps
        self._show = show

    async def choose(self, last: TurnRecord | None) -> RepositoryChoice | AmbiguousRepository:
        """Choose the repositories by the question and its files; the thread counts where they say nothing."""
        message, deps = self._entry.message, self._deps
        text = message.text
        if last is not None and last.goal is not None and is_verify_request(text):
            deps.access.check_repository(message, last.goal.repository)
            why = "the answer that is verified is about it"
            return RepositoryChoice(repositories=(last.goal.repository,), why=why, question=text)
        self.attached = await read_attachments(message, self._platform, takes_images=deps.takes_images, mask=deps.mask)
        self.quotes = await read_thread_quotes(message, self._platform, deps.mask)
        asked = [text, *(one.text[:LONGEST_QUOTED] for one in self.attached.texts)]
        around = read_quotes(self.quotes) if is_bare_question(text) else ()
        return await deps.chooser.choose(self._entry, "\n".join([*asked, *around]))

    async def choose_ref(self, choice: RepositoryChoice) -> RefChoice:
        """Choose what the repository is read at; a follow-up stays where the question before it was answered."""
        self.repositories = tuple(choice.repositories)
        message, before = self._entry.message, None
        if not (message.private and message.kind == "command"):  # which is one conversation for ever
            last = await self._deps.records.last(self._entry.conversation)
            before = read_ref(last.at) if last is not None and last.names == self.repositories else None
        at = await self._deps.refs.choose(choice.repositories, choice.question, before=before)
        self.ref, self.next_ref = at.ref, at.ref if at.is_lasting else before
        return at

    async def ensure_indexed(self) -> None:
        """Index what never was, or whose index is damaged; this may take longer than an answer.

        One of several that cannot be indexed is left to the agent, which answers without it and says so.
        """
        for name in self.repositories:
            await self._ensure_one(name, is_needed=len(self.repositories) == 1)

    async def _ensure_one(self, name: str, *, is_needed: bool) -> None:
        repositories = self._deps.repositories
        try:
            await repositories.pin_existing(name)
        except NotIndexed as reason:
            why = f"{reason} " if isinstance(reason, IndexDamaged) else ""
            try:
                await repositories.refresh(name, progress=lambda progress: self._show(name, progress, why))
            except IndexerError as error:
                if is_needed:
                    raise
                log.warning("%s could not be indexed for an answer: %s", name, error)
        except IndexerError as error:
            if is_needed:
                raise
            log.warning("%s cannot be read for an answer: %s", name, error)

    async def pin_ref(self) -> CodeSearch | None:
        """Hold the code at the ref that was chosen, which is indexed where nobody has asked about it recently."""
        if self.ref is None:
            return None
        name, ref = self.repositories[0], self.ref
        shown = f"{name} at {ref.name}"
        return await self._deps.refs.pin(name, ref, lambda progress: self._show(shown, progress, ""))

    def name_pinned(self, held: CodeSearch | None) -> tuple[str, ...]:
        """Name the repositories as a run reads them: one that is held at a ref with its commit."""
        return self.repositories if held is None else (pin_name(self.repositories[0], held.commit.sha),)
