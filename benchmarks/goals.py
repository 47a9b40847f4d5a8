"""Measures goal runs before a Gemini with a script: `python -m benchmarks.goals`.

Three runs of `citebot goal` from end to end, in the sandbox of this machine: a failing test is fixed, a wrong claim
refuted, a right one confirmed. Then what an iteration of the loop takes beside the model and the sandbox.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from pydantic import SecretStr

from agent.events import AgentEvent
from agent.goals.goal import GoalRequest
from agent.llm.models import open_models
from agent.persistence.checkpointer import open_saver
from agent.sandbox.sandbox import Channel, Execution, SandboxCommand, SandboxLimits
from bot.cli.main import run
from tests.agent.goals.conftest import MENDED, PARSER, GoalBench
from tests.fakes.gemini import FakeGemini, Reply, calls, running_gemini
from tests.fakes.prepared_python import prepared_python
from tests.fakes.repositories import GitRepo
from tests.fakes.unconfined import FolderCopies, UnconfinedSandbox

ITERATIONS = 30
LOOP = GoalRequest(goal="command", arguments={"argv": ["false"]}, task="measure", max_iterations=ITERATIONS)


def main() -> None:
    """Print both tables."""
    with tempfile.TemporaryDirectory(prefix="citebot-goals-") as folder, running_gemini() as gemini:
        with prepared_python() as python:
            prepare_surroundings(Path(folder), python, gemini)
            run_three(Path(folder), gemini)
        asyncio.run(measure_loop(Path(folder), gemini))


def prepare_surroundings(folder: Path, python: Path, gemini: FakeGemini) -> None:
    """Let citebot find a data folder, a configuration and the model of this measurement alone."""
    config = folder / "citebot.toml"
    config.write_text(f'[sandbox]\npython = "{python}"\n', encoding="utf-8")
    os.environ |= {
        "CITEBOT_HOME": str(folder / "home"),
        "CITEBOT_CONFIG": str(config),
        "GOOGLE_API_KEY": "key-of-the-measurement",
        "GOOGLE_API_BASE_URL": gemini.url,
    }


def run_three(folder: Path, gemini: FakeGemini) -> None:
    """Print the table of the three runs; the first includes what is imported and indexed once."""
    repo = GitRepo(folder / "parser")
    for path, text in PARSER.items():
        repo.write(path, text)
    repo.commit()
    print_row("run", "verdict", "iterations", "tokens in", "out", "seconds")
    look = ("bash_exec", {"command": "cat parser.py"})
    mend = ("file_write", {"path": "parser.py", "content": MENDED})
    script = [calls(look), calls(mend)]
    print_run(gemini, script, "mend a failing test", repo, "pytest", "accept empty input", "--select", "test_parser.py")
    for what, value in (("a wrong claim", 8), ("a right claim", 7)):
        test = ("file_write", {"path": "test_citebot_claim.py", "content": write_claim(value)})
        print_run(gemini, [calls(look), calls(test)], what, repo, "claim", f"parse('7') returns [{value}]")


def write_claim(value: int) -> str:
    """Write the test of a claim as a model would."""
    return (
        "from parser import parse\n\n\n"
        "def call():\n    return parse('7')\n\n\n"
        f"def test_claim_holds():\n    assert call() == [{value}]\n\n\n"
        f"def test_claim_does_not_hold():\n    assert call() != [{value}]\n"
    )


def print_run(gemini: FakeGemini, script: list[Reply], what: str, repo: GitRepo, *arguments: str) -> None:
    """Take a run to its end and print what came of it."""
    gemini.replies.extend(script)
    began = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as said:
        code = run(["goal", *arguments, "--repo", str(repo.root), "--yes", "--json"])
    seconds = time.perf_counter() - began
    if not out.getvalue():
        raise SystemExit(f"{what} ended with {code}: {said.getvalue()}")
    found = json.loads(out.getvalue())
    verdict = found["details"].get("verdict") or ("reached" if found["achieved"] else "not reached")
    tokens = (str(found["input_tokens"]), str(found["output_tokens"]))
    print_row(what, verdict, str(found["iterations"]), *tokens, f"{seconds:.1f}")


class TimedSandbox(UnconfinedSandbox):
    """A sandbox that knows how long commands took."""

    seconds = 0.0

    async def run(
        self,
        command: SandboxCommand,
        working_copy: Path,
        limits: SandboxLimits,
        *,
        say: Callable[[Channel, bytes], None] | None = None,
    ) -> Execution:
        """Run a command."""
        began = time.perf_counter()
        try:
            return await super().run(command, working_copy, limits, say=say)
        finally:
            self.seconds += time.perf_counter() - began


@asynccontextmanager
async def open_bench(folder: Path, gemini: FakeGemini) -> AsyncGenerator[tuple[GoalBench, TimedSandbox]]:
    """Open a goal agent over a small parser, its checkpoints in SQLite as always."""
    async with AsyncExitStack() as stack:
        saver = await stack.enter_async_context(open_saver(folder / "conversations.sqlite"))
        models = await stack.enter_async_context(open_models(google_api_key=SecretStr("k"), google_base_url=gemini.url))
        copies, sandbox = folder / "copies", TimedSandbox()
        copies.mkdir()
        yield (
            GoalBench(
                saver=saver,
                models=models,
                gemini=gemini,
                copies=FolderCopies(PARSER, copies),
                files=dict(PARSER),
                sandbox=sandbox,
            ),
            sandbox,
        )


async def measure_loop(folder: Path, gemini: FakeGemini) -> None:
    """Print what an iteration takes beside the model and the commands: a file is written, and the check made again."""
    numbers = iter(range(10_000))
    gemini.script = lambda _: calls(("file_write", {"path": "number.txt", "content": f"{next(numbers)}\n"}))
    async with open_bench(folder, gemini) as (bench, sandbox):
        agent = bench.open_agent()
        proposal = await agent.propose(LOOP)
        began = time.perf_counter()
        events: list[AgentEvent] = [event async for event in agent.start(proposal, thread="goal", run_id="run")]
        seconds = time.perf_counter() - began
    asked = [event.payload["seconds"] for event in events if event.kind == "model_end"]
    ends = [event.ts for event in events if event.kind == "iteration_complete"]
    rest = (seconds - sum(asked) - sandbox.seconds) / ITERATIONS
    print_row("\nmilliseconds of an iteration", "all", "model", "commands", "the loop")
    times = (seconds / ITERATIONS, statistics.fmean(asked), sandbox.seconds / ITERATIONS, rest)
    print_row(f"of {len(ends)} iterations", *(f"{1000 * each:.1f}" for each in times))


def print_row(name: str, *cells: str) -> None:
    """Print a line of a table."""
    print(f"{name:30}" + "".join(f"{cell:>13}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
