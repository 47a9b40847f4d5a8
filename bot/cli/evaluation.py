"""`citebot eval`: asks questions with known answers, and compares the results with the last run."""

from __future__ import annotations

import asyncio
import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from agent import AgentError, Answer
from bot.access import AccessPolicy
from bot.adapters.terminal import output
from bot.adapters.terminal.display import Terminal
from bot.adapters.terminal.output import CommandOutcome
from bot.app import App
from bot.cli.ask import make_single_questions, make_thread
from bot.errors import AnswerFailed, BotError
from bot.markdown import format_dollars, to_one_line
from bot.questions.expectations import Place, Wording
from bot.settings import PERSON, Settings
from bot.surfaces.principals import Principal
from indexer import IndexerError

FOLDER = "evaluations"  # in the data folder
FORM = 1
_MEASURES = ("found", "cited", "right")
_PROBLEMS = {
    "extra_forbidden": "there is no such key; there are: {keys}",
    "missing": "this key is missing",
    "string_pattern_mismatch": "write a person as PLATFORM:ID, such as slack:U0123",
    "tuple_type": "write it as a list",
}


def _split_one(value: object) -> object:
    """Wrap one text in a list."""
    return (value,) if isinstance(value, str) else value


def _read_place(value: object) -> object:
    """Read `path`, `path:12` or `path:12-30`."""
    try:
        return Place.parse(value) if isinstance(value, str) else value
    except ValueError as error:
        raise ValueError("write it as PATH, PATH:LINE or PATH:FIRST-LAST") from error


Names = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(_split_one)]
People = Annotated[tuple[Annotated[str, Field(pattern=PERSON)], ...], BeforeValidator(_split_one)]


class EvalCase(BaseModel):
    """A table `[[questions]]`: a question, and the parts of a right answer.

    It cites one of `places`, and contains all of `words`; alternatives are a list. `seen_by` are
    people who may ask it under the access rules, `hidden_from` others who may not.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str = Field(min_length=1)
    repositories: Names = Field(default=(), alias="repository")
    places: Annotated[tuple[Annotated[Place, BeforeValidator(_read_place)], ...], BeforeValidator(_split_one)] = ()
    words: Annotated[tuple[Names, ...], BeforeValidator(_split_one)] = ()
    seen_by: People = ()
    hidden_from: People = ()

    @model_validator(mode="after")
    def _check_expected(self) -> Self:
        if not self.places and not self.words:
            raise ValueError("a question needs the `places` or `words` of a right answer")
        return self


class QuestionFile(BaseModel):
    """A file of questions, each only once."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    questions: tuple[EvalCase, ...]

    @field_validator("questions")
    @classmethod
    def _check_texts(cls, questions: tuple[EvalCase, ...]) -> tuple[EvalCase, ...]:
        if not questions:
            raise ValueError("there are no questions; write a table [[questions]] for each")
        texts = [one.question for one in questions]
        if repeated := next((text for text in texts if texts.count(text) > 1), None):
            raise ValueError(f"the question {repeated!r} appears twice")
        return questions


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalResult:
    """The result of a question; `wrong` lists the missing parts of its answer.

    `commits` are the commits read. One that `is_failed` has no answer, for example because the provider of the model is
    down.
    """

    found: bool = False
    cited: bool = False
    wrong: tuple[str, ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float | None = 0.0
    seconds: float = 0.0
    commits: Mapping[str, str] = field(default_factory=dict)
    is_failed: bool = False

    @property
    def right(self) -> bool:
        """Whether the answer has everything expected."""
        return not self.wrong


def read_questions(file: Path) -> Sequence[EvalCase]:
    """Read a file of questions; `BotError` lists all its errors, with lines and keys."""
    try:
        text = file.read_text(encoding="utf-8")
        return QuestionFile.model_validate(tomllib.loads(text)).questions
    except OSError as error:
        raise BotError(f"{file} cannot be read: {error.strerror}.") from error
    except ValidationError as error:
        raise BotError("\n  ".join([f"{file} is wrong:", *_list_problems(error, text)])) from None
    except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError
        raise BotError(f"{file} cannot be read: {error}") from error


def _list_problems(error: ValidationError, text: str) -> Iterator[str]:
    begins = [number for number, line in enumerate(text.splitlines(), 1) if line.strip().startswith("[[questions]]")]
    for detail in error.errors():
        where, keys = "", [str(part) for part in detail["loc"]]
        if len(detail["loc"]) > 1 and isinstance(number := detail["loc"][1], int):
            line = f" (line {begins[number]})" if number < len(begins) else ""
            where, keys = f"question {number + 1}{line}: ", keys[2:]
        table = EvalCase if where else QuestionFile
        known = ", ".join(one.alias or name for name, one in table.model_fields.items())
        told = _PROBLEMS.get(detail["type"], detail["msg"].removeprefix("Value error, ")).replace("{keys}", known)
        yield where + ": ".join(filter(None, (".".join(keys), told)))


async def run_evaluation(
    settings: Settings,
    file: Path,
    asked: Sequence[EvalCase],
    apps: Mapping[str | None, App],
    terminal: Terminal,
    *,
    threshold: int | None,
    accept: bool,
    as_json: bool,
) -> CommandOutcome:
    """Ask every question of a file, keep the results in the data folder, and compare them with the last run.

    Fails if a question got worse, or if a smaller share than the threshold is right. A worse question keeps its old
    result as the standard, until it is right again or the run is accepted. `apps` are by the names of their
    repositories; None is the one of questions without any.
    """
    kept = await asyncio.to_thread(_find_kept, settings, file)
    before = await asyncio.to_thread(_read_run, kept)
    results = {one.question: await _ask(one, apps, terminal, settings.access) for one in asked}
    changes = {question: _compare(result, before.get(question)) for question, result in results.items()}
    kept_rows = {
        question: before.get(question)
        if result.is_failed or (changes[question] == "worse" and not accept)
        else {**asdict(result), "right": result.right}
        for question, result in results.items()
    }
    await asyncio.to_thread(_keep_run, kept, {question: row for question, row in kept_rows.items() if row is not None})
    right = sum(result.right for result in results.values())
    is_enough = threshold is None or right * 100 >= threshold * len(results)
    ok = is_enough and "worse" not in changes.values()
    if as_json:
        rows = [_to_record(question, result, changes[question]) for question, result in results.items()]
        return CommandOutcome(output=output.to_json({"ok": ok, "right": right, "questions": rows}), ok=ok)
    last = sum(bool(one.get("right")) for question, one in before.items() if question in results)
    lines = [*_format_rows(results, changes), "", _format_totals(results, last if before else None)]
    if not is_enough:
        lines.append(f"Fewer than {threshold}% are right.")
    return CommandOutcome(output="\n".join(lines), ok=ok)


async def _ask(asked: EvalCase, apps: Mapping[str | None, App], terminal: Terminal, access: AccessPolicy) -> EvalResult:
    """Ask a question; an error counts as a wrong answer."""
    chosen = [apps[name] for name in (asked.repositories or (None,))]
    names = [(await app.index.status()).repository for app in chosen]
    refused = tuple(_find_wrong_access(asked, names, access))
    try:
        shown = await make_single_questions(chosen, terminal).ask(
            asked.question, conversation=make_thread(), is_shown=False
        )
    except (AgentError, AnswerFailed, IndexerError) as error:
        return EvalResult(wrong=(str(error), *refused), is_failed=True)
    answer, record = shown.answer, shown.record
    cited = any(place.is_cited_by(one) for place in asked.places for one in answer.citations)
    return EvalResult(
        found=answer.found,
        cited=cited if asked.places else bool(answer.citations),
        wrong=(*_find_missing(asked, answer, is_cited=cited), *refused),
        input_tokens=record.input_tokens,
        output_tokens=record.output_tokens,
        dollars=shown.dollars,
        seconds=round(answer.seconds, 3),
        commits=dict(answer.read_at),
    )


def _find_missing(asked: EvalCase, answer: Answer, *, is_cited: bool) -> Iterator[str]:
    if asked.places and not is_cited:
        yield f"cites none of {', '.join(place.path for place in asked.places)}"
    wording = Wording(answer.text)
    for spellings in asked.words:
        if not wording.has_any(spellings):
            yield f"does not say {' or '.join(map(repr, spellings))}"


def _find_wrong_access(asked: EvalCase, names: Sequence[str], access: AccessPolicy) -> Iterator[str]:
    """Find people whose access to the repositories is not as expected."""
    for person in (*asked.seen_by, *asked.hidden_from):
        platform, _, own = person.partition(":")
        writer = Principal(name=person, platform=platform, person=own)
        visible = access.list_visible(writer.write(), names)
        if person in asked.seen_by and set(visible) != set(names):
            yield f"{person} may not ask about {', '.join(name for name in names if name not in visible)}"
        if person in asked.hidden_from and visible:
            yield f"{person} may ask about {', '.join(visible)}"


def _find_kept(settings: Settings, file: Path) -> Path:
    """Return the file of the last run of these questions, with a model or without."""
    mode = "model" if settings.has_model else "no-model"
    digest = hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:8]
    return settings.home / FOLDER / f"{file.stem}-{digest}-{mode}.json"


def _read_run(kept: Path) -> Mapping[str, Any]:
    """Return the results of the last run by question; none before the first, or from an unreadable file."""
    try:
        run = json.loads(kept.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return run["questions"] if isinstance(run, dict) and run.get("format") == FORM else {}


def _keep_run(kept: Path, rows: Mapping[str, Mapping[str, Any]]) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    run = {"format": FORM, "at": datetime.now(UTC).isoformat(timespec="seconds"), "questions": rows}
    draft = kept.with_suffix(".new")
    draft.write_text(json.dumps(run, indent=1, ensure_ascii=False), encoding="utf-8")
    draft.replace(kept)


def _compare(result: EvalResult, before: Mapping[str, Any] | None) -> str:
    """Return `worse`, `better` or `new`; empty if nothing changed."""
    if before is None:
        return "new"
    now = [(bool(getattr(result, name)), bool(before.get(name))) for name in _MEASURES]
    if any(was and not is_so for is_so, was in now):
        return "worse"
    return "better" if any(is_so and not was for is_so, was in now) else ""


def _to_record(question: str, result: EvalResult, change: str) -> Mapping[str, Any]:
    return {"question": question, "right": result.right, "change": change, **asdict(result)}


def _format_rows(results: Mapping[str, EvalResult], changes: Mapping[str, str]) -> Iterator[str]:
    yield f"{'found':<6}{'cited':<6}{'right':<6}{'':<7}{'tokens':>8}  {'cost':<12}  question"
    for question, result in results.items():
        marks = "".join(f"{'yes' if getattr(result, name) else 'no':<6}" for name in _MEASURES)
        tokens, cost = result.input_tokens + result.output_tokens, format_dollars(result.dollars)
        yield f"{marks}{changes[question]:<7}{tokens:>8,}  {cost:<12}  {to_one_line(question)}"
        yield from (f"{'':<49}{to_one_line(each)}" for each in result.wrong)


def _format_totals(results: Mapping[str, EvalResult], last: int | None) -> str:
    found, cited, right = (sum(getattr(result, name) for result in results.values()) for name in _MEASURES)
    tokens = sum(result.input_tokens + result.output_tokens for result in results.values())
    known = [result.dollars for result in results.values() if result.dollars is not None]
    cost = format_dollars(sum(known) if len(known) == len(results) else None)
    compared = f" (last run: {last})" if last is not None else ""
    return f"Of {len(results)}: {found} found, {cited} cited, {right} right{compared}. {tokens:,} tokens, {cost}."
