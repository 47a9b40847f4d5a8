"""The code that a message of a chat is about, chosen by its words, its files, and the thread around it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from agent import is_bare_question, is_verify_request, read_quotes
from bot.access import AccessPolicy
from bot.conversations.turns.attached_files import ReadAttachments, read_attachments
from bot.conversations.turns.thread_context import read_thread_quotes
from bot.messages import LONGEST_QUOTED
from bot.ports import ChatPlatform, Repositories
from bot.repositories.choice import AmbiguousRepository, RepositoryChoice
from bot.repositories.chooser import RepositoryChooser
from bot.repositories.chosen_code import ChosenCode, ShowProgress
from bot.repositories.ref_chooser import RefChooser
from bot.storage.inbox import InboxEntry
from bot.storage.turn_records import TurnRecord, TurnRecordStore


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


class QuestionCode(ChosenCode):
    """The code that a message of a chat is about. Only the methods here set its fields.

    `attached` is what came with the question, `quotes` the thread that citebot was called into with it.
    """

    def __init__(self, entry: InboxEntry, platform: ChatPlatform, deps: CodeDeps, show: ShowProgress) -> None:
        super().__init__(deps.repositories, deps.refs, show)
        self.attached = ReadAttachments()
        self.quotes: Sequence[str] = ()
        self._entry = entry
        self._platform = platform
        self._deps = deps

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
