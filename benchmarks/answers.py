"""Measures what a model is shown and what it answers: `python -m benchmarks.answers --mirrors DIR`.

The questions are those of `benchmarks/keyless/` whose truth is a place, and with `--sweqa DIR` those of SWE-QA, which
have files and lines. Each is asked in a conversation of its own, of a scripted model that asks for nothing (`still`),
of one that makes one round of the tool calls that suggest themselves (`one-round`), and where one is configured
(`CITEBOT_MODEL` and its key, as for the bot), of a real one (`model`). Of everything that the model was sent it is
measured how much of the truth was in it: the share of the files, and of the lines where the truth names some, among
the first 2,000, 4,000 and 8,000 tokens of evidence and in all of it. Beside that stand the passages of the plain search
in their order, measured in the same run, and the ratio to them. Then: calls of the model, tokens sent, the time to the
first word (for information: it is the machine's), the share of the second call's prompt that the first begins with,
which a provider has in its cache (`benchmarks/prefixes.py`), and the citations: how many that the model wrote are in
the answer, and how many of these are in a file of the truth. With `--judge PROVIDER:MODEL` a language model also judges
each answer (`benchmarks/answer_judge.py` has the rubric). `--data` keeps the indexes for next time.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from agent.agent import Agent
from agent.llm.chat_model import LangChainChatModel
from agent.llm.models import DEFAULT_MODEL, ChatModels, open_models
from agent.llm.providers import PROVIDERS, parse_model_spec
from agent.persistence.checkpointer import open_saver
from agent.ports import Answer, ModelSource
from benchmarks.agent import Library
from benchmarks.answer_judge import judge_answer
from benchmarks.keyless import HELD_OUT, QUESTIONS
from benchmarks.scripted_chat import ModelWatch, ScriptedChat, WatchedSpec
from benchmarks.shown_lines import ShownLine, find_shown_lines
from benchmarks.truths import PlacedQuestion, PlacedSubject, read_keyless, read_sweqa
from bot.settings import Settings
from indexer.generations.reader import IndexReader
from indexer.index import CodeIndex
from indexer.secrets import redact_secrets
from indexer.secrets.cached_redactor import CachedRedactor

TOKEN_BUDGETS = (2_000, 4_000, 8_000, 10**9)
PLAIN = "plain search"
SCRIPTED = {"still": False, "one-round": True}
MODEL = "model"
PLAIN_HITS = 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Coverage:
    """The share of the truth's files, and of its lines, within each of `TOKEN_BUDGETS`; no lines where it has none."""

    files: tuple[float, ...]
    lines: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What one question came to with one answerer; a plain search has only the coverage and its tokens."""

    answerer: str
    subject: PlacedSubject
    question: PlacedQuestion
    coverage: Coverage
    tokens: int
    calls: int = 0
    prefix: float | None = None
    seconds_to_first: float = 0.0
    written: int = 0
    kept: int = 0
    in_truth: int = 0
    judged: float | None = None


def measure_coverage(question: PlacedQuestion, shown: Sequence[ShownLine]) -> Coverage:
    """Compare what was shown with the truth; where one place is enough, the best of them counts."""
    best = max if question.is_any else statistics.fmean
    seen = [{(one.path, one.line) for one in shown if one.tokens <= budget} for budget in TOKEN_BUDGETS]
    files = [{path for path, _ in lines} for lines in seen]
    lined = {path: lines for path, lines in question.places.items() if lines}
    return Coverage(
        files=tuple(best([float(path in within) for path in question.places]) for within in files),
        lines=tuple(
            best([sum((path, at) in within for at in lines) / len(lines) for path, lines in lined.items()])
            for within in seen
            if lined
        ),
    )


def read_subjects(arguments: argparse.Namespace) -> Iterator[PlacedSubject]:
    """Read the questions about every repository that is there, or one of them."""
    folder = QUESTIONS / HELD_OUT if arguments.held_out else QUESTIONS
    suites = [partial(read_keyless, arguments.questions or folder, arguments.mirrors)]
    if arguments.sweqa is not None:
        suites = [partial(read_sweqa, arguments.sweqa, arguments.mirrors)]
    for read in suites:
        for subject in read():
            if arguments.repo in (None, subject.name):
                yield subject


async def ask_questions(subject: PlacedSubject, arguments: argparse.Namespace, home: Path) -> AsyncIterator[Outcome]:
    """Ask each question of each answerer, over one index."""
    index = await CodeIndex.open(subject.mirror, home=home, ref=subject.commit)
    try:
        if not await index.is_current():
            await index.refresh()
        bench = Bench(subject=subject, code=await index.pin(), home=home, judge=arguments.judge)
        for question in subject.questions[: arguments.most]:
            yield await bench.search(question)
            for answerer in arguments.answerers:
                yield await bench.ask(question, answerer)
    finally:
        await index.aclose()


@dataclass(frozen=True, kw_only=True)
class Bench:
    """One indexed repository, and who is asked about it."""

    subject: PlacedSubject
    code: IndexReader
    home: Path
    judge: str | None

    async def search(self, question: PlacedQuestion) -> Outcome:
        """Measure the passages that the search finds, in their order."""
        hits = self.code.search_now(question.text, limit=PLAIN_HITS)
        numbered = ["\n".join([hit.location.path, *_number_lines(hit.location.start_line, hit.text)]) for hit in hits]
        return Outcome(
            answerer=PLAIN,
            subject=self.subject,
            question=question,
            coverage=await self._measure(question, numbered),
            tokens=sum(map(len, numbered)) // 4,
        )

    async def ask(self, question: PlacedQuestion, answerer: str) -> Outcome:
        """Ask one answerer, and judge what it was shown and what it wrote."""
        watch = ModelWatch()
        models = _make_models(answerer, question.text, watch)
        async with open_saver(self.home / "answers.sqlite") as saver:
            agent = Agent(Library(code=self.code), saver, CachedRedactor(redact_secrets), models=models)
            answer, first = await _read_answer(agent, question.text)

        kept = [citation.path for citation in answer.citations] if answer.model else []
        return Outcome(
            answerer=answerer,
            subject=self.subject,
            question=question,
            coverage=await self._measure(question, watch.list_texts()),
            tokens=sum(call.input_tokens for call in watch.calls.values()),
            calls=len(watch.calls),
            prefix=watch.measure_prefix(),
            seconds_to_first=first,
            written=watch.count_citations(),
            kept=len(kept),
            in_truth=sum(path in question.places for path in kept),
            judged=await self._judge(question, answer),
        )

    async def _measure(self, question: PlacedQuestion, texts: Sequence[str]) -> Coverage:
        files = {entry.path for entry in await self.code.files()}
        read = cache(partial(_read_lines, self.subject.mirror, self.subject.commit))
        return measure_coverage(question, list(find_shown_lines(texts, files, read)))

    async def _judge(self, question: PlacedQuestion, answer: Answer) -> float | None:
        if self.judge is None:
            return None
        async with _open_judge(self.judge) as models:
            return (await judge_answer(models, self.code, question, answer.text)).share


def _number_lines(first: int, text: str) -> Iterator[str]:
    return (f"{first + at}: {line}" for at, line in enumerate(text.split("\n")))


def _read_lines(mirror: Path, commit: str, path: str) -> tuple[str, ...]:
    command = ["git", "-C", str(mirror), "show", f"{commit}:{path}"]
    shown = subprocess.run(command, capture_output=True, check=False).stdout
    return tuple(redact_secrets(shown.decode("utf-8", "replace")).split("\n"))


def _make_models(answerer: str, question: str, watch: ModelWatch) -> ModelSource:
    """Return the models of one question, watched."""
    if answerer in SCRIPTED:
        script = ScriptedChat(question=question, asks=SCRIPTED[answerer])
        spec = WatchedSpec(
            spec=f"scripted:{answerer}",
            provider=next(iter(PROVIDERS.values())),
            model=answerer,
            api_key=None,
            base_url=None,
            make=lambda _sampling: script,
            watch=watch,
        )
        chat = LangChainChatModel(spec)
        return ChatModels(main=(chat,), small=(chat,))
    settings = Settings.load()
    main, small = (_watch_configured(name, settings, watch) for name in _name_models(settings))
    return ChatModels(main=(main,), small=(small,), check=(small,))


def _name_models(settings: Settings) -> tuple[str, str]:
    main = settings.model or DEFAULT_MODEL
    return main, settings.small_model or main


def _watch_configured(name: str, settings: Settings, watch: ModelWatch) -> LangChainChatModel:
    spec = parse_model_spec(name, google_api_key=settings.google_api_key, google_base_url=settings.google_api_base_url)
    known = {field: getattr(spec, field) for field in ("spec", "provider", "model", "api_key", "base_url")}
    return LangChainChatModel(WatchedSpec(**known, make=spec.build, watch=watch))


def _open_judge(name: str) -> AbstractAsyncContextManager[ModelSource]:
    if name in SCRIPTED:
        return nullcontext(_make_models(name, "", ModelWatch()))
    settings = Settings.load()
    return open_models(name, google_api_key=settings.google_api_key, google_base_url=settings.google_api_base_url)


async def _read_answer(agent: Agent, question: str) -> tuple[Answer, float]:
    """Return the answer, and the seconds until its first word."""
    began, first = time.perf_counter(), 0.0
    async for event in agent.ask(question, thread=f"answers:{uuid.uuid4().hex}"):
        if event.kind == "token" and not first:
            first = time.perf_counter() - began
        if event.kind == "answer":
            answer: Answer = event.payload["answer"]
            return answer, first
    raise AssertionError("the last event of a run is its answer")


def table(outcomes: Sequence[Outcome]) -> str:
    """Write a table of the coverage, and one of what it costs and what becomes of the citations."""
    budgets = [f"{budget // 1000}k" if budget < TOKEN_BUDGETS[-1] else "all" for budget in TOKEN_BUDGETS]
    heads = [f"{what} {budget}" for what in ("files", "lines") for budget in budgets]
    groups = _group(outcomes)
    lines = [f"{'coverage':28} {'n':>4} {' '.join(f'{head:>10}' for head in heads)}"]
    for name, rows in groups.items():
        shares = _average_coverage(rows)
        lines.append(f"{name:28} {len(rows):4} {' '.join(f'{share:10.3f}' for share in shares)}")
    for name, rows in groups.items():
        plain = groups.get(f"{name.partition(' / ')[0]} / {PLAIN}", [])
        if plain and not name.endswith(PLAIN):
            ratios = zip(_average_coverage(rows), _average_coverage(plain), strict=True)
            cells = " ".join(f"{ours / theirs if theirs else 0:10.2f}" for ours, theirs in ratios)
            lines.append(f"{f'{name} : plain'[:28]:28} {'':4} {cells}")
    lines += [
        "",
        f"{'cost and citations':28} {'calls':>6} {'most':>5} {'tokens p50':>11} {'p90':>7} {'first word':>11}",
    ]
    lines[-1] += f" {'prefix':>7} {'written':>8} {'kept':>6} {'in truth':>9} {'judged':>7}"
    lines += [_format_cost(name, rows) for name, rows in groups.items()]
    return "\n".join(lines)


def _group(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    groups: dict[str, list[Outcome]] = {}
    for one in outcomes:
        groups.setdefault(f"{one.subject.suite} / {one.answerer}", []).append(one)
    return groups


def _average_coverage(rows: Sequence[Outcome]) -> list[float]:
    lined = [row.coverage.lines for row in rows if row.coverage.lines]
    files = [statistics.fmean(column) for column in zip(*(row.coverage.files for row in rows), strict=True)]
    lines = [statistics.fmean(column) for column in zip(*lined, strict=True)] or [0.0] * len(TOKEN_BUDGETS)
    return [*files, *lines]


def _format_cost(name: str, rows: Sequence[Outcome]) -> str:
    tokens = sorted(row.tokens for row in rows)
    written, kept = sum(row.written for row in rows), sum(row.kept for row in rows)
    judged = [row.judged for row in rows if row.judged is not None]
    prefixes = [row.prefix for row in rows if row.prefix is not None]
    first = statistics.median(row.seconds_to_first for row in rows)
    cells = [
        f"{statistics.median(row.calls for row in rows):6.1f} {max(row.calls for row in rows):5}",
        f"{statistics.median(tokens):11.0f} {tokens[int(0.9 * (len(tokens) - 1))]:7} {first:10.2f}s",
        f"{statistics.median(prefixes):7.0%}" if prefixes else f"{'-':>7}",
        f"{written:8} {kept / written if written else 0:6.2f}",
        f"{sum(row.in_truth for row in rows) / kept if kept else 0:9.2f}",
        f"{statistics.fmean(judged):7.2f}" if judged else f"{'-':>7}",
    ]
    return f"{name:28} {' '.join(cells)}"


async def run(arguments: argparse.Namespace) -> None:
    """Ask everything of the repositories that are there and print the tables."""
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as temporary:
        for subject in read_subjects(arguments):
            async for outcome in ask_questions(subject, arguments, arguments.data or Path(temporary)):
                outcomes.append(outcome)
                if arguments.each:
                    print(_format_outcome(outcome), flush=True)
            if arguments.by_repository:
                print(f"{subject.name}\n{table([one for one in outcomes if one.subject == subject])}\n", flush=True)
    print(table(outcomes) if outcomes else "Nothing to measure.")


def _format_outcome(outcome: Outcome) -> str:
    shares = " ".join(f"{share:.2f}" for share in (*outcome.coverage.files, *outcome.coverage.lines))
    return f"{outcome.answerer:12} {outcome.subject.name:12} {outcome.tokens:6} {shares}  {outcome.question.text!r}"


def parse_arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; the answerers are the scripted ones, and the configured model if there is one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mirrors", type=Path, default=Path("../.mirror"), help="folder of clones")
    parser.add_argument("--questions", type=Path, help="folder of questions; benchmarks/keyless unless given")
    parser.add_argument("--held-out", action="store_true", help="ask the questions that nothing is tuned on")
    parser.add_argument("--sweqa", type=Path, help="ask those of a folder of SWE-QA questions instead")
    parser.add_argument("--data", type=Path, help="keep indexes here")
    parser.add_argument("--repo", help="only questions about this repository")
    parser.add_argument("--most", type=int, help="so many questions of each repository")
    parser.add_argument("--answerers", nargs="*", choices=[*SCRIPTED, MODEL], help="who is asked")
    parser.add_argument("--judge", help="PROVIDER:MODEL that judges the answers; none unless given")
    parser.add_argument("--each", action="store_true", help="also print a line for each question")
    parser.add_argument("--by-repository", action="store_true", help="also print the tables of each repository")
    arguments = parser.parse_args(words)
    if arguments.answerers is None:
        arguments.answerers = [*SCRIPTED, *([MODEL] if Settings.load().has_model else [])]
    return arguments


def main() -> None:
    """Read the command line and measure."""
    asyncio.run(run(parse_arguments()))


if __name__ == "__main__":
    main()
