"""Measures answers without a model by questions with truths: `python -m benchmarks.keyless --mirrors DIR`.

`benchmarks/keyless/` has a file for each public repository: its address, a commit, and questions as teammates write
them, each of a kind. The truths were found with git, grep and by reading, before citebot was asked;
`benchmarks/answer_scoring.py` says what earns points. A repository that is missing is skipped, and said so. The
length of an answer is counted in rows of a terminal of 100 columns. `--data` keeps clones and indexes for next time.
`--held-out` asks the questions of `benchmarks/keyless/held_out/` instead, about other repositories: nothing is tuned on
them, so they tell whether what the first ones gained holds elsewhere.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import statistics
import subprocess
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from agent import AgentEvent, Answer
from benchmarks.answer_scoring import WIDTH, Question, score_answer
from benchmarks.retrieval import _mirror
from bot.adapters.terminal.display import Terminal
from bot.app import App, make_path_table
from bot.markdown import format_footnote
from bot.settings import Settings
from bot.storage.data_folder_access import restrict_umask

QUESTIONS = Path(__file__).with_name("keyless")
HELD_OUT = "held_out"


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """A public repository at a commit, and what is asked about it."""

    name: str
    url: str
    commit: str
    questions: tuple[Question, ...]

    @classmethod
    def read(cls, file: Path) -> Subject:
        """Read a file of questions."""
        record = json.loads(file.read_text(encoding="utf-8"))
        questions = tuple(map(Question.parse, record["questions"]))
        return cls(name=record["name"], url=record["url"], commit=record["commit"], questions=questions)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What one question got; `rows` are those of the answer without its list of citations."""

    subject: str
    question: Question
    answer: Answer | None
    points: int
    rows: int
    rows_with_citations: int
    seconds: float


def read_subjects(folder: Path, name: str | None, kind: str | None) -> Iterator[Subject]:
    """Every repository with questions, or one of them; of the questions all, or one kind."""
    for file in sorted(folder.glob("*.json")):
        subject = Subject.read(file)
        chosen = tuple(each for each in subject.questions if kind in (None, each.kind))
        if chosen and name in (None, subject.name):
            yield replace(subject, questions=chosen)


def check_out(subject: Subject, mirrors: Path, data: Path) -> Path | None:
    """Clone a repository at its commit as a teammate has it; None, and a line that says so, where it is missing."""
    mirror = _mirror(mirrors, subject.url, subject.name)
    if mirror is None:
        print(f"skipped {subject.name}: no copy of {subject.url} below {mirrors}")
        return None
    if _run_git(mirror, "cat-file", "-e", f"{subject.commit}^{{commit}}").returncode:
        print(f"skipped {subject.name}: {mirror} does not have {subject.commit}")
        return None
    clone = data / "clones" / subject.name
    if not clone.is_dir():
        clone.parent.mkdir(parents=True, exist_ok=True)
        _run_git(mirror, "clone", "--quiet", "--shared", "--no-checkout", str(mirror.resolve()), str(clone.resolve()))
    if _run_git(clone, "checkout", "--quiet", "--force", "-B", "main", subject.commit).returncode:
        print(f"skipped {subject.name}: {clone} cannot be checked out")
        return None
    return clone


def _run_git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", "-C", folder, *arguments], capture_output=True, check=False)


async def ask_questions(subject: Subject, clone: Path, home: Path) -> AsyncIterator[Outcome]:
    """Ask each question in a conversation of its own, of citebot without a key."""
    settings = Settings(home=home)
    async with App.open(settings, make_path_table(settings, clone)) as app:
        await app.index.refresh()
        async with app.open_assistant() as assistant:
            for question in subject.questions:
                started = time.perf_counter()
                answer = await _read_answer(assistant.ask(question.text, thread=f"keyless:{uuid.uuid4().hex}"))
                yield _judge(subject.name, question, answer, time.perf_counter() - started)


async def _read_answer(events: AsyncIterator[AgentEvent]) -> Answer | None:
    answer: Answer | None = None
    async for event in events:
        if event.kind == "answer":
            answer = event.payload["answer"]
    return answer


def _judge(subject: str, question: Question, answer: Answer | None, seconds: float) -> Outcome:
    return Outcome(
        subject=subject,
        question=question,
        answer=answer,
        points=score_answer(question, answer.text, answer.citations) if answer else 0,
        rows=count_rows(replace(answer, citations=())) if answer else 0,
        rows_with_citations=count_rows(answer) if answer else 0,
        seconds=seconds,
    )


def count_rows(answer: Answer) -> int:
    """How many rows of a terminal an answer fills."""
    screen = io.StringIO()
    console = Console(file=screen, width=WIDTH, force_terminal=True, color_system=None, markup=False, highlight=False)
    Terminal(out=console, err=console).show(answer)
    return len(screen.getvalue().strip().splitlines())


def show_outcome(outcome: Outcome, *, whole: bool) -> str:
    """One line with the points of a question; with `whole`, also the answer and its citations."""
    question = outcome.question
    line = f"{outcome.points}  {outcome.subject:16} {question.kind:12} {outcome.rows:4} rows  {question.text!r}"
    if not whole:
        return line
    answer = outcome.answer
    cited = map(format_footnote, answer.citations) if answer else ()
    return "\n".join(["=" * WIDTH, line, "", answer.text if answer else "(no answer)", *cited, ""])


def table(outcomes: Sequence[Outcome]) -> str:
    """One line a kind and one for all: points, their share, and how long the answers are."""
    groups = f"{'':14} {'':>9} {'':>9} {'':>5}   {'rows':^11}   {'with citations':^14}"
    columns = f"{'kind':14} {'questions':>9} {'points':>9} {'%':>5}   {'p50':>5} {'p90':>5}   {'p50':>7} {'p90':>6}"
    lines = [groups.rstrip(), f"{columns}   {'s, p50':>9}"]
    kinds = sorted({outcome.question.kind for outcome in outcomes})
    lines += [_row(kind, [each for each in outcomes if each.question.kind == kind]) for kind in kinds]
    lines.append(_row("all", outcomes))
    return "\n".join(lines)


def _row(label: str, outcomes: Sequence[Outcome]) -> str:
    points, possible = sum(each.points for each in outcomes), 2 * len(outcomes)
    rows = [each.rows for each in outcomes]
    cited = [each.rows_with_citations for each in outcomes]
    seconds = statistics.median(each.seconds for each in outcomes)
    return (
        f"{label:14} {len(outcomes):9} {f'{points}/{possible}':>9} {100 * points / possible:5.0f}   "
        f"{statistics.median(rows):5.0f} {find_percentile(rows, 90):5.0f}   "
        f"{statistics.median(cited):7.0f} {find_percentile(cited, 90):6.0f}   {seconds:9.2f}"
    )


def find_percentile(values: Sequence[int], percent: int) -> int:
    """The smallest value that so many per cent of the values do not exceed."""
    return sorted(values)[max(0, -(-len(values) * percent // 100) - 1)]


async def run(arguments: argparse.Namespace) -> None:
    """Ask everything of the repositories that are there and print the table."""
    outcomes: list[Outcome] = []
    folder = arguments.questions / HELD_OUT if arguments.held_out else arguments.questions
    with tempfile.TemporaryDirectory() as temporary:
        data = arguments.data or Path(temporary)
        for subject in read_subjects(folder, arguments.repo, arguments.kind):
            clone = check_out(subject, arguments.mirrors, data)
            if clone is None:
                continue
            async for outcome in ask_questions(subject, clone, data / "home"):
                outcomes.append(outcome)
                if arguments.show or arguments.each:
                    print(show_outcome(outcome, whole=arguments.show), flush=True)
    print(table(outcomes) if outcomes else "Nothing to measure.")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mirrors", type=Path, default=Path("../.mirror"), help="folder of clones")
    parser.add_argument("--questions", type=Path, default=QUESTIONS, help="folder of questions")
    parser.add_argument("--held-out", action="store_true", help="ask the questions that nothing is tuned on")
    parser.add_argument("--data", type=Path, help="keep clones and indexes here")
    parser.add_argument("--kind", help="only questions of this kind")
    parser.add_argument("--repo", help="only questions about this repository")
    parser.add_argument("--each", action="store_true", help="also print a line for each question")
    parser.add_argument("--show", action="store_true", help="also print each question with its answer and points")
    restrict_umask()
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
