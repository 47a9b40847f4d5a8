"""Chooses the commit for a question: the one that it names, else the last of its thread."""

from __future__ import annotations

import asyncio
import difflib
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast, get_args

from agent import AskedComparison, CodeSearch, parse_comparison
from bot.repositories.ref_mentions import (
    RefMention,
    find_ref_mentions,
    remove_mention,
    spell_out_comparison,
    spell_out_pull_request,
)
from indexer import IndexerError, NamedRef, Progress, RefKind, UnknownRevision, describe_unknown

if TYPE_CHECKING:
    from bot.ports import RefSource
    from bot.repositories.names import RepositoryProfile

_WORD = re.compile(r"[^\W\d_]{3}")
_NUMBER = re.compile(r"\d+")
_ALIKE = 0.75  # of two names, from where one may be the other misspelt

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class RefChoice:
    """The ref of a question; None is the newest commit of the followed branch.

    `question` is the question without the words for the ref. `remark` is the first line of the answer, or empty. Unless
    it `is_lasting`, later questions return to the earlier ref.
    """

    question: str
    ref: NamedRef | None = None
    remark: str = ""
    is_lasting: bool = True


class RefChooser:
    """Chooses among existing refs: a name counts only if it is a branch, tag or commit there."""

    def __init__(
        self, refs: Mapping[str, RefSource] | None = None, signs: Mapping[str, RepositoryProfile] | None = None
    ) -> None:
        self._refs = {} if refs is None else refs
        self._signs = signs or {}

    async def choose(self, repositories: Sequence[str], question: str, *, before: NamedRef | None = None) -> RefChoice:
        """Choose for a question; one that names nothing stays at the ref `before` of its thread.

        Raises `UnknownRevision`, with the nearest names, if a question clearly means a missing ref.
        """
        question, compared = self._read_comparison(question, self._get_page(repositories))
        if compared is not None:
            return await self._choose_newer(repositories, question, compared, before)
        mentions = find_ref_mentions(question, self._get_page(repositories))
        if len(repositories) != 1 or repositories[0] not in self._refs:
            return RefChoice(question=question, remark=self._explain_limit(repositories, mentions))
        name = repositories[0]
        found = [(mention, ref) for mention in mentions if (ref := await self._find(name, mention)) is not None]
        if len({ref.commit for _, ref in found}) > 1:  # it compares them
            return RefChoice(question=question)
        if found:
            mention, ref = found[0]
            is_newest = ref.is_followed
            return RefChoice(question=_shorten(question, mention), ref=None if is_newest else ref)
        named = next((mention for mention in mentions if mention.is_named), None)
        remark = await self._explain_absence(name, named) if named is not None else ""
        return RefChoice(question=question, ref=await self._find_again(name, before), remark=remark)

    async def find(self, repository: str, written: str) -> NamedRef | None:
        """Find an explicitly named ref; None for the followed branch.

        Raises `UnknownRevision` if there is no such ref, or if only the newest commit can be read here.
        """
        source = self._refs.get(repository)
        if source is None:
            raise UnknownRevision(_describe_limit(repository, written))
        kind = _read_kind(written)
        ref = await source.find(written, kind)
        if ref is None:
            raise UnknownRevision(describe_unknown(repository, written, kind, await source.suggest(written)))
        return None if ref.is_followed else ref

    async def pin(
        self, repository: str, ref: NamedRef, progress: Callable[[Progress], None] | None = None
    ) -> CodeSearch:
        """Pin a repository at a ref, which may be slow the first time; `progress` is called in the loop."""
        loop = asyncio.get_running_loop()

        def tell(step: Progress) -> None:
            if progress is not None and not loop.is_closed():
                loop.call_soon_threadsafe(progress, step)

        return await self._refs[repository].pin(ref, tell)

    def _read_comparison(self, question: str, page: str) -> tuple[str, AskedComparison | None]:
        """Read the compared commits; links and pull requests are spelled out in the question."""
        asked = (*spell_out_comparison(question, page), spell_out_pull_request(question, page))
        for written in filter(None, asked):
            if (compared := parse_comparison(written)) is not None:
                return written, compared
        return question, parse_comparison(question)

    async def _choose_newer(
        self, repositories: Sequence[str], question: str, compared: AskedComparison, before: NamedRef | None
    ) -> RefChoice:
        """Choose the newer of two commits if the question is about its contents, which its index knows."""
        source = self._refs.get(repositories[0]) if len(repositories) == 1 else None
        if source is None:
            return RefChoice(question=question)
        if not compared.until:
            return RefChoice(question=question, ref=await self._find_again(repositories[0], before))
        newer: NamedRef | None = None
        if compared.target and compared.after.upper() != "HEAD":  # which would be the newer one itself
            try:
                newer = await source.find(compared.until, _read_kind(compared.until))
            except IndexerError as error:  # which the comparison will meet, and explain
                log.warning("%s: %s", repositories[0], error)
        return RefChoice(question=question, ref=newer if newer and not newer.is_followed else None, is_lasting=False)

    def _get_page(self, repositories: Sequence[str]) -> str:
        if len(repositories) != 1:
            return ""
        sign, source = self._signs.get(repositories[0]), self._refs.get(repositories[0])
        return (sign.page if sign is not None else "") or (source.page if source is not None else "")

    async def _find(self, repository: str, mention: RefMention) -> NamedRef | None:
        source = self._refs[repository]
        try:
            for written in mention.names:
                ref = await source.find(written, mention.kind)
                if ref is not None:
                    return ref
        except UnknownRevision:
            raise
        except IndexerError as error:
            if mention.strict:
                raise
            log.warning("%s: %s", repository, error)
            return None
        nearest = await source.suggest(mention.names[-1]) if mention.strict or mention.likely else ()
        if mention.strict or any(_is_alike(mention.names[-1], name) for name in nearest):
            raise UnknownRevision(describe_unknown(repository, mention.names[-1], mention.kind, nearest))
        return None

    async def _find_again(self, repository: str, before: NamedRef | None) -> NamedRef | None:
        """Find the ref of an earlier question, which may have moved; fall back to its commit."""
        if before is None or before.kind == "commit":
            return before
        try:
            return await self._refs[repository].find(before.name, before.kind) or before
        except IndexerError as error:
            log.warning("%s: %s", repository, error)
            return before

    async def _explain_absence(self, repository: str, mention: RefMention) -> str:
        """Say that a name does not exist, and which commit is read instead."""
        if mention.kind == "pull request":
            return f"No pull request {mention.names[0]} can be read here, so this is about the newest commit."
        nearest = await self._refs[repository].suggest(mention.names[-1])
        absence = describe_unknown(repository, mention.names[-1], mention.kind, nearest)
        return f"{absence} This is about the newest commit."

    def _explain_limit(self, repositories: Sequence[str], mentions: Sequence[RefMention]) -> str:
        named = next((mention.names[-1] for mention in mentions if mention.strict), "")
        if not named:
            return ""
        if len(repositories) != 1:
            return (
                f"Several repositories are read at their newest commits. Ask about one of them to read it at {named}."
            )
        return _describe_limit(repositories[0], named)


def _read_kind(written: str) -> RefKind | None:
    """Read the kind of a ref that a name must have; None for ambiguous names."""
    return "pull request" if written.strip().startswith(("#", "!")) else None


def write_ref(ref: NamedRef | None) -> Mapping[str, str]:
    """Write a ref, so that later questions of its thread use it."""
    return {} if ref is None else {"kind": ref.kind, "name": ref.name, "commit": ref.commit}


def read_ref(fields: Mapping[str, str]) -> NamedRef | None:
    """Read a stored ref; None without one."""
    kind = fields.get("kind")
    if kind not in get_args(RefKind):
        return None
    return NamedRef(kind=cast("RefKind", kind), name=fields.get("name", ""), commit=fields.get("commit", ""))


def _describe_limit(repository: str, written: str) -> str:
    return f"Only the followed branch of {repository} can be read here, and not {written[:80]!r}."


def _is_alike(written: str, name: str) -> bool:
    """Whether one name may be a misspelling of the other, or its form with another number."""
    one, other = written.casefold(), name.casefold()
    if _NUMBER.sub("0", one) == _NUMBER.sub("0", other) and _WORD.search(one):
        return True
    is_near = difflib.SequenceMatcher(None, one, other).ratio() >= _ALIKE
    return is_near and _NUMBER.findall(one) == _NUMBER.findall(other)


def _shorten(question: str, mention: RefMention) -> str:
    """Drop where to look; an address of a file also names the subject."""
    return question if mention.is_address and not mention.strict else remove_mention(question, mention)
