"""The code that a question is about, once its repositories are chosen: which commit, indexed, and held."""

from __future__ import annotations

import logging
from collections.abc import Callable

from bot.ports import Repositories
from bot.repositories.choice import RepositoryChoice
from bot.repositories.names import pin_name
from bot.repositories.ref_chooser import RefChoice, RefChooser, read_ref
from bot.storage.turn_records import TurnRecord
from indexer import IndexDamaged, IndexerError, NamedRef, NotIndexed, Progress, UnknownRevision

ShowProgress = Callable[[str, Progress, str], None]  # of a name, and why it is indexed at all

log = logging.getLogger(__name__)


class ChosenCode:
    """The repositories of a question and the ref that one of them is read at. Only the methods here set the fields."""

    def __init__(self, repositories: Repositories, refs: RefChooser, show: ShowProgress) -> None:
        self.repositories: tuple[str, ...] = ()
        self.ref: NamedRef | None = None
        self.next_ref: NamedRef | None = None  # where the conversation continues
        self._all = repositories
        self._refs = refs
        self._show = show

    async def choose_ref(self, choice: RepositoryChoice, last: TurnRecord | None, *, at: str = "") -> RefChoice:
        """Choose what is read: what the asker says expressly, else what the question does, or the one before it did."""
        self.repositories = tuple(choice.repositories)
        before = read_ref(last.at) if last is not None and last.names == self.repositories else None
        if not at:
            chosen = await self._refs.choose(self.repositories, choice.question, before=before)
        elif len(self.repositories) == 1:
            chosen = RefChoice(question=choice.question, ref=await self._refs.find(self.repositories[0], at))
        else:
            raise UnknownRevision("Several repositories are read at their newest commits. Ask about one of them.")
        self.ref, self.next_ref = chosen.ref, chosen.ref if chosen.is_lasting else before
        return chosen

    async def ensure_indexed(self) -> None:
        """Index what never was, or whose index is damaged; this may take longer than an answer.

        One of several that cannot be indexed is left to the agent, which answers without it and says so.
        """
        for name in self.repositories:
            try:
                await self._ensure_one(name)
            except IndexerError as error:
                if len(self.repositories) == 1:
                    raise
                log.warning("%s cannot be read for an answer: %s", name, error)

    async def _ensure_one(self, name: str) -> None:
        try:
            await self._all.pin_existing(name)
        except NotIndexed as reason:
            why = f"{reason} " if isinstance(reason, IndexDamaged) else ""
            await self._all.refresh(name, progress=lambda progress: self._show(name, progress, why))

    async def hold(self) -> tuple[str, ...]:
        """Name the repositories as a run reads them: one at a ref with its commit, which is indexed where it is not."""
        if self.ref is None:
            return self.repositories
        shown = f"{self.repositories[0]} at {self.ref.name}"
        held = await self._refs.pin(self.repositories[0], self.ref, lambda step: self._show(shown, step, ""))
        return (pin_name(self.repositories[0], held.commit.sha),)
