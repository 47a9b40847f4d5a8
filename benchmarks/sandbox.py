"""Measures the sandbox: `python -m benchmarks.sandbox`.

Prints what gets out without a sandbox and in each that this machine has, and how long it takes to start `true` there.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import time

from agent.sandbox.boxes import Bubblewrap, Landlock, PythonEnvironment, try_sandbox
from agent.sandbox.sandbox import Sandbox, SandboxCommand, SandboxLimits
from indexer.subprocesses import start_confined_async
from tests.agent.sandbox.attempts import ATTEMPTS, make_round, read_round
from tests.agent.sandbox.surroundings import Surroundings, open_surroundings

ROUNDS = 50
LIMITS = SandboxLimits(seconds=120, processes=64)


async def main() -> None:
    """Print both tables."""
    with open_surroundings() as surroundings:
        sandboxes: list[Sandbox] = []
        for sandbox in (mechanism(start_confined_async, PythonEnvironment()) for mechanism in (Bubblewrap, Landlock)):
            trial = await try_sandbox(sandbox, surroundings.root)
            if trial.problem:
                print(f"{sandbox.mechanism} cannot be used here: {trial.problem} {trial.advice}\n")
            else:
                sandboxes.append(sandbox)
        await compare_attempts(surroundings, sandboxes)
        await compare_starts(surroundings, sandboxes)


async def compare_attempts(surroundings: Surroundings, sandboxes: list[Sandbox]) -> None:
    """Print for each attempt where it gets out."""
    print_row("attempt", "outside", *(sandbox.mechanism for sandbox in sandboxes))
    command = make_round(surroundings.argument)
    outside = await asyncio.to_thread(surroundings.run_command_outside, command, surroundings.make_working_copy())
    rounds = [read_round(outside)]
    surroundings.take_planted()
    for sandbox in sandboxes:
        result = await sandbox.run(command, surroundings.make_working_copy(), LIMITS)
        rounds.append(read_round(result.stdout.text))
        if planted := surroundings.take_planted():
            print(f"{sandbox.mechanism} lets files out: {planted}")
    for name in ATTEMPTS:
        print_row(name, *("gets out" if "OUT" in said[name].split() else "-" for said in rounds))


async def compare_starts(surroundings: Surroundings, sandboxes: list[Sandbox]) -> None:
    """Print how many milliseconds `true` takes from its start to its result."""
    print_row("\nmilliseconds for `true`", "p50", "p90")
    seconds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        process = await asyncio.create_subprocess_exec("true", stdin=subprocess.DEVNULL)
        await process.wait()
        seconds.append(time.perf_counter() - began)
    print_times("outside", seconds)
    for sandbox in sandboxes:
        tree, seconds = surroundings.make_working_copy(), []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            await sandbox.run(SandboxCommand(argv=["true"]), tree, LIMITS)
            seconds.append(time.perf_counter() - began)
        print_times(sandbox.mechanism, seconds)


def print_times(name: str, seconds: list[float]) -> None:
    """Print the median and the ninth decile."""
    deciles = statistics.quantiles(seconds, n=10)
    print_row(name, f"{1000 * deciles[4]:.1f}", f"{1000 * deciles[8]:.1f}")


def print_row(name: str, *cells: str) -> None:
    """Print a line of a table."""
    print(f"{name:46}" + "".join(f"{cell:>12}" for cell in cells), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
