"""Measures what commands cost in a process of their own: `python -m benchmarks.start --repo PATH`.

The repository is indexed first, with a data folder that is thrown away. What counts is processor time, of the process
and of the git that it starts, from its first instruction to its last. Every round measures each command once, and
`python -c pass` and a loop in Python too: a machine that others use is told by these.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

ROUNDS = 5
LOOP = "sum(range(1_000_000))"
LOOP_SECONDS = 0.011  # of the machine that the goals are for
# What an editor sends first; at the end of its input `citebot mcp` ends.
HELLO = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    b'"clientInfo":{"name":"start","version":"1"}}}\n'
)
# Each with the most seconds that it should take.
COMMANDS: Mapping[str, tuple[Sequence[str], float]] = {
    "ask, where a name is defined": (("ask", "where is {name} defined?"), 0.8),
    "ask, in words": (("ask", "how are requests dispatched?"), 0.8),
    "search": (("search", "how are requests dispatched"), 0.5),
    "callers": (("callers", "{name}"), 0.5),
    "index, nothing to do": (("index",), 0.4),
    "mcp, until it has said hello": (("mcp",), 1.0),
}


def main() -> None:
    """Measure each command some times, and print its least time and that beside `python -c pass`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repo", type=Path, required=True)
    parser.add_argument("--name", default="url_for", help="a function of the repository")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        run = partial(measure, {"PATH": os.environ["PATH"], "CITEBOT_HOME": home, "CITEBOT_MODEL": "none"})
        lines = {
            label: ["-m", "bot", *(part.format(name=arguments.name) for part in command), "--repo", str(arguments.repo)]
            for label, (command, _) in COMMANDS.items()
        }
        lines["--help"] = ["-m", "bot", "--help"]
        for line in lines.values():  # indexes, and compiles what is compiled at the first time
            run(line)
        bare, loop = ["-c", "pass"], ["-c", LOOP]
        rounds = [[run(line) for line in (bare, loop, *lines.values())] for _ in range(arguments.rounds)]
    start, looping, *found = map(min, zip(*rounds, strict=True))
    speed = (looping - start) / LOOP_SECONDS
    print(f"`python -c pass` {start:.3f} s; `{LOOP}` {looping - start:.3f} s, {speed:.1f} times {LOOP_SECONDS} s")
    for label, seconds in zip(lines, found, strict=True):
        goal = f", goal {COMMANDS[label][1]} s" if label in COMMANDS else ""
        print(f"{label:30} {seconds:.2f} s, {seconds / start:5.1f} times pass; scaled {seconds / speed:.2f} s{goal}")


def measure(environment: Mapping[str, str], arguments: Sequence[str]) -> float:
    """Run Python and return the seconds of processor time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], env=environment, input=HELLO, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
