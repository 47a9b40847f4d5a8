"""`citebot replay`: derives an answer again from its record, and compares the two."""

from __future__ import annotations

import difflib
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from bot.adapters.terminal import output
from bot.adapters.terminal.output import CommandOutcome
from bot.app import App, make_redactor, name_versions, open_replaying
from bot.cli.upkeep import check_reader, open_existing_store
from bot.clock import Clock
from bot.errors import AnswerFailed, BotError
from bot.markdown import to_one_line
from bot.questions.run_recording import RunRecording
from bot.repositories.names import pin_name
from bot.settings import Settings
from bot.storage.answer_records import AnswerRecord, AnswerRecordStore, EvidencePlace, KeptAnswer

if TYPE_CHECKING:
    from agent import RecordedModels
    from bot.ports import RefSource, RepositoryIndex

LISTED = 20  # answers

OpenApps = Sequence[Callable[[], AbstractAsyncContextManager[App]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Replay:
    """An answer as recorded and as derived again; `has_other_prompts` if the prompts differ."""

    recorded: AnswerRecord
    derived: AnswerRecord
    has_other_prompts: bool = False

    @property
    def is_same_text(self) -> bool:
        """Whether the answer is the same to the byte."""
        return (self.recorded.text, self.recorded.citations) == (self.derived.text, self.derived.citations)

    @property
    def is_same_evidence(self) -> bool:
        """Whether the same lines were read and used in the same way."""
        return _list_places(self.recorded.evidence) == _list_places(self.derived.evidence)

    @property
    def version_changes(self) -> Mapping[str, tuple[str, str]]:
        """The changed versions: then, and now."""
        then, now = self.recorded.versions, self.derived.versions
        return {
            name: (then.get(name, ""), now.get(name, ""))
            for name in {**then, **now}
            if then.get(name, "") != now.get(name, "")
        }


async def list_answers(settings: Settings, clock: Clock, *, as_json: bool) -> CommandOutcome:
    """List the newest answers that can be derived again, the last one first."""
    async with open_answers(settings, clock) as answers:
        kept = await answers.list_newest(most=LISTED) if answers is not None else ()
    note = "" if kept else "No answers are stored yet: `citebot serve` stores its answers."
    if as_json:
        rows = [
            {"run": one.run_id, "at": one.at, "question": one.record.question, "commits": one.record.commits}
            for one in kept
        ]
        return CommandOutcome(output=output.to_json({"answers": rows}), note=note, ok=bool(kept))
    lines = [f"{one.run_id}  {_format_time(one.at)}  {to_one_line(one.record.question)[:100]}" for one in kept]
    return CommandOutcome(output="\n".join(lines), note=note, ok=bool(kept))


async def replay_answer(
    settings: Settings, clock: Clock, opening: OpenApps, run_id: str, *, as_json: bool
) -> CommandOutcome:
    """Derive the answer of a run again; succeeds if the answer and its evidence are the same."""
    async with open_answers(settings, clock) as answers:
        kept = await answers.find(run_id) if answers is not None else None
    if kept is None:
        raise BotError(f"No answer of a run {to_one_line(run_id)[:80]!r} is kept. `citebot replay` lists the newest.")
    if kept.record.obstacle:
        raise BotError(f"This answer cannot be replayed: {kept.record.obstacle}.")
    done = await _derive(settings, kept.record, opening)
    ok = done.is_same_text and done.is_same_evidence
    mask = make_redactor(settings)
    text = output.to_json(_to_record(kept, done)) if as_json else "\n".join(_format_replay(kept, done))
    return CommandOutcome(output=mask(text), ok=ok)


@asynccontextmanager
async def open_answers(settings: Settings, clock: Clock) -> AsyncGenerator[AnswerRecordStore | None]:
    """Open the records of answers; None if there are none. `NotAllowed` unless this account may read them."""
    check_reader(settings)
    async with open_existing_store(settings) as database:
        yield AnswerRecordStore(database, clock) if database is not None else None


async def _derive(settings: Settings, record: AnswerRecord, opening: OpenApps) -> Replay:
    models = _make_models(record)
    recording, answer = RunRecording(record.question), None
    thread = f"console:local:replay:{uuid.uuid4().hex}"
    async with AsyncExitStack() as stack:
        indexes, refs = await _open_repositories(record, opening, stack)
        agent = await stack.enter_async_context(
            open_replaying(settings, indexes, refs, models=models, asked_at=record.asked_at)
        )
        await agent.restore(record.history, thread=thread)
        names = [pin_name(name, commit) for name, commit in record.commits.items()]
        async with aclosing(agent.ask(record.question, thread=thread, repositories=names)) as events:
            async for event in events:
                recording.take(event)
                if event.kind == "answer":
                    answer = event.payload["answer"]
    if answer is None or answer.route == "failed":
        raise AnswerFailed(answer.text if answer is not None else "The run ended without an answer.")
    derived = recording.make_record(answer, record.at, name_versions(settings))
    return Replay(recorded=record, derived=derived, has_other_prompts=models is not None and models.has_other_prompts)


def _make_models(record: AnswerRecord) -> RecordedModels | None:
    """Return models that repeat the recorded replies; None if only rules answered."""
    from agent import RecordedModels

    if record.mode == "rules" and not record.replies:
        return None
    return RecordedModels(record.replies, calls_tools=record.mode == "tools")


async def _open_repositories(
    record: AnswerRecord, opening: OpenApps, stack: AsyncExitStack
) -> tuple[Mapping[str, RepositoryIndex], Mapping[str, RefSource]]:
    """Open the repositories of an answer in their order; `BotError` if one is no longer configured."""
    indexes: dict[str, RepositoryIndex] = {}
    refs: dict[str, RefSource] = {}
    for open_app in opening:
        app = await stack.enter_async_context(open_app())
        name = (await app.index.status()).repository
        if name in record.commits:
            indexes[name], refs = app.index, {**refs, **app.refs}
    if missing := record.commits.keys() - indexes.keys():
        raise BotError(f"{', '.join(sorted(missing))} is not among the repositories of citebot.toml any more.")
    return {name: indexes[name] for name in record.commits}, refs


def _list_places(evidence: Sequence[EvidencePlace]) -> Counter[tuple[str, int, int, str, str]]:
    return Counter((one.path, one.start_line, one.end_line, one.commit, one.use) for one in evidence)


def _to_record(kept: KeptAnswer, done: Replay) -> dict[str, object]:
    return {
        "run": kept.run_id,
        "at": kept.at,
        "question": kept.record.question,
        "commits": kept.record.commits,
        "same_answer": done.is_same_text,
        "same_evidence": done.is_same_evidence,
        "version_changes": done.version_changes,
        "other_prompts": done.has_other_prompts,
        "answer": done.recorded.text,
        "derived": done.derived.text,
        "evidence": [asdict(one) for one in done.derived.evidence],
    }


def _format_replay(kept: KeptAnswer, done: Replay) -> list[str]:
    read_at = ", ".join(f"{to_one_line(name)} at {commit[:7]}" for name, commit in kept.record.commits.items())
    lines = [f"{_format_time(kept.at)}, {read_at}: {to_one_line(kept.record.question)}", ""]
    places = done.derived.evidence
    if done.is_same_text:
        lines.append("The answer is the same, byte for byte.")
    else:
        before, after = done.recorded, done.derived
        lines += ["The answer differs:", *_diff((before.text, *before.citations), (after.text, *after.citations))]
    if done.is_same_evidence:
        cited = sum(one.use == "cited" for one in places)
        lines.append(f"The evidence is the same: {len(places)} places, {cited} of them cited.")
    else:
        then, now = _list_places(done.recorded.evidence), _list_places(places)
        lines += ["The evidence differs:", *(f"- {_format_key(one)}" for one in then - now)]
        lines += [f"+ {_format_key(one)}" for one in now - then]
    if done.recorded.replies:
        same = "to other prompts" if done.has_other_prompts else "to the same prompts"
        lines.append(f"{len(done.recorded.replies)} recorded replies of {done.recorded.model or 'models'}, {same}.")
    changed = [f"{name} {then or '-'} is now {now or '-'}" for name, (then, now) in done.version_changes.items()]
    lines.append(f"Changed since: {'; '.join(changed)}." if changed else _describe_versions(done.derived.versions))
    if rejected := [one for one in places if one.use != "cited"]:
        lines += ["", "Evidence that was read but not cited:", *map(_format_place, rejected)]
    return lines


def _describe_versions(versions: Mapping[str, str]) -> str:
    return f"The same as then: {', '.join(f'{name} {value}' for name, value in versions.items())}."


def _diff(before: Sequence[str], after: Sequence[str]) -> list[str]:
    split = ("\n".join(before).split("\n"), "\n".join(after).split("\n"))
    return list(difflib.unified_diff(*split, "recorded", "derived", lineterm="", n=1))


def _format_key(place: tuple[str, int, int, str, str]) -> str:
    path, start, end, commit, use = place
    return f"{to_one_line(path)}:{start}-{end}{f' at {commit[:7]}' if commit else ''}, {use}"


def _format_place(place: EvidencePlace) -> str:
    symbol = f"  {to_one_line(place.symbol)}" if place.symbol else ""
    use = "rejected" if place.use == "rejected" else "considered"
    return f"  {to_one_line(place.path)}:{place.start_line}-{place.end_line}{symbol}  {use}, score {place.score:g}"


def _format_time(at: float) -> str:
    return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M}"
