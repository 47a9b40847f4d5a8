"""Reuses answers for the same question about the same code, for people who may see all of it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agent import Answer, AskedMeaning, Citation, CodeSearch, StoredQuery, read_meaning, run_again, store_queries
from bot.markdown.formatting import to_one_line
from bot.questions.descriptions import format_age
from bot.storage.answer_records import AnswerRecordStore, ReusableAnswer
from indexer import Location, NamedRef

if TYPE_CHECKING:
    from bot.access import AccessPolicy
    from bot.messages import IncomingMessage
    from bot.ports import Repositories
    from bot.storage.living_answers import AnswerEvidence

MAX_TRIED = 5  # of the answers to the same question
_ROUTES = frozenset({"fast_path", "broad"})  # of answers from the code


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedCode:
    """The meaning of a question, its repositories, and the digest of their state."""

    meaning: AskedMeaning
    codes: Mapping[str, CodeSearch]
    place: str
    key: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ReusedAnswer:
    """An earlier answer in its present form, its record, and a line on its origin."""

    answer: Answer
    fields: Mapping[str, Any]
    said: str


@dataclass(frozen=True, kw_only=True)
class AnswerReuse:
    """Finds earlier answers that are still true, and stores new ones.

    `versions` name the inputs besides the code, and `writer` is the model here, if any.
    """

    answers: AnswerRecordStore
    repositories: Repositories
    access: AccessPolicy
    versions: Mapping[str, str]
    writer: str
    mask: Callable[[str], str]
    now: Callable[[], float]

    async def read(
        self, question: str, names: Sequence[str], ref: NamedRef | None, held: CodeSearch | None
    ) -> AskedCode | None:
        """Read the meaning of a question; None if it may have several."""
        codes = {name: held or await self.repositories.pin_existing(name) for name in names}
        meaning = await read_meaning(question, list(codes.values()))
        if meaning is None or not codes:
            return None
        at = [ref.kind, ref.name, ref.commit] if ref is not None else []
        return AskedCode(
            meaning=meaning,
            codes=codes,
            key=_digest([meaning.key, meaning.language if self.writer else ""]),
            place=_digest([sorted(codes), at, sorted(self.versions.items()), self.writer]),
        )

    async def find(self, asked: AskedCode, message: IncomingMessage) -> ReusedAnswer | None:
        """Find an answer to the same question that is still true, and whose code the asker may see."""
        found = await self.answers.list_reusable(asked.key, asked.place, most=MAX_TRIED)
        for one in found:
            answer = _read_answer(one.fields["answer"])
            seen = {*answer.read_at, *(each.repository for each in answer.citations)} - {""}
            if not self.access.may_see(message, seen):
                continue
            if not await self._is_true(asked, answer, one.fields["queries"]):
                continue
            named = next((each for each in found if _may_know(message, each)), None)
            commits = ", ".join(f"`{code.commit.sha[:7]}`" for code in asked.codes.values())
            return ReusedAnswer(
                answer=replace(_move(answer, asked.codes), text=self.mask(answer.text)),
                fields=one.fields,
                said=f"{self._describe_asker(named, message)}, still true at {commits}",
            )
        return None

    async def collect(
        self, asked: AskedCode, answer: Answer, requests: Sequence[Any], evidence: AnswerEvidence | None
    ) -> Mapping[str, Any] | None:
        """Collect the lookups and lines that an answer rests on; None if it must not be reused."""
        is_of_code = answer.route in _ROUTES and not (answer.meanings or answer.missing or answer.is_pointing)
        is_current = answer.read_at == {name: code.commit.sha for name, code in asked.codes.items()}
        is_here = all(one.path and not one.is_elsewhere for one in answer.citations)
        if not (is_of_code and is_current and is_here) or evidence is None or bool(answer.model) != bool(self.writer):
            return None
        queries = {name: list(found) for name, found in (evidence.queries or {}).items()}
        for name, code in asked.codes.items():
            queries.setdefault(name, []).extend(await store_queries(code, asked.meaning.lookups))
        return {
            "queries": {name: [one.to_fields() for one in found] for name, found in queries.items()},
            "requests": list(requests),
        }

    def make(
        self, asked: AskedCode, answer: Answer, fields: Mapping[str, Any], message: IncomingMessage
    ) -> ReusableAnswer:
        """Make the record of an answer and its evidence."""
        own = {
            "answer": dataclasses.asdict(answer),
            "author": message.author,
            "author_name": message.author_name,
            "channel": _name_channel(message),
            "private": message.private,
        }
        return ReusableAnswer(meaning=asked.key, place=asked.place, fields={**fields, **own})

    async def _is_true(self, asked: AskedCode, answer: Answer, queries: Mapping[str, Sequence[Any]]) -> bool:
        """Whether all cited lines and lookup results of an answer are unchanged."""
        for name, code in asked.codes.items():
            before = answer.read_at[name]
            cited = sorted({one.path for one in answer.citations if one.repository in {"", name}})
            if not {file.path for file in await code.files()}.issuperset(cited):
                return False  # a file that is left out by now
            if code.commit.sha == before:
                continue
            if (await self.repositories.drift(name, before, cited)).changed != ():
                return False
            for one in map(StoredQuery.from_fields, queries.get(name, ())):
                if await run_again(code, one) != one:
                    return False
        return True

    def _describe_asker(self, one: ReusableAnswer | None, message: IncomingMessage) -> str:
        """Name the earlier asker and the time, as far as the new one may know; else say that the answer is not new."""
        if one is None:
            return "An earlier answer"
        is_own = one.fields["author"] == message.author
        name = "you" if is_own else to_one_line(one.fields["author_name"])
        return f"Asked {f'by {name}' if name else 'here'} {format_age(self.now() - one.asked_at)}"


def _may_know(message: IncomingMessage, one: ReusableAnswer) -> bool:
    """Whether somebody may know of the question: it is theirs, or was asked publicly in the same place."""
    is_here = one.fields["channel"] == _name_channel(message)
    return is_here and (one.fields["author"] == message.author or not (one.fields["private"] or message.private))


def _name_channel(message: IncomingMessage) -> list[str]:
    return [message.place.platform, message.place.workspace, message.place.channel]


def _read_answer(fields: Mapping[str, Any]) -> Answer:
    lists = {name: tuple(fields[name]) for name in ("searched", "meanings")}
    return Answer(**{**fields, **lists, "citations": tuple(Citation(**one) for one in fields["citations"])})


def _move(answer: Answer, codes: Mapping[str, CodeSearch]) -> Answer:
    """Return an answer at the present commits, if its lines are the same."""
    now = {name: code.commit.sha for name, code in codes.items()}
    citations = tuple(_move_citation(one, codes[one.repository or answer.repository]) for one in answer.citations)
    commit, commits = now[answer.repository] if answer.commit else "", now if answer.commits else {}
    return replace(answer, citations=citations, commit=commit, commits=commits, seconds=0.0)


def _move_citation(one: Citation, code: CodeSearch) -> Citation:
    at = Location(path=one.path, start_line=one.start_line, end_line=one.end_line)
    return replace(one, commit=code.commit.sha, url=code.permalink(at))


def _digest(parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
