"""Measures what one question costs in a process of its own: `python -m benchmarks.start --repo PATH`.

The repository is indexed first, with a data folder that is thrown away. What counts is processor time, of the process
and of the git that it starts, from its first instruction to its last.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

QUESTIONS = ("where is url_for defined?", "how are requests dispatched?")
ROUNDS = 15


def main() -> None:
    """Ask each question some times, and print the least and the usual time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repo", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        environment = {"PATH": os.environ["PATH"], "CITEBOT_HOME": home, "CITEBOT_MODEL": "none"}
        measure(["index", "--repo", str(arguments.repo)], environment)
        for question in QUESTIONS:
            command = ["ask", "--repo", str(arguments.repo), question]
            measure(command, environment)  # whatever is compiled at the first time
            seconds = [measure(command, environment) for _ in range(arguments.rounds)]
            print(f"{question:40} {min(seconds):.2f} s at least, {statistics.median(seconds):.2f} s usually")


def measure(arguments: list[str], environment: dict[str, str]) -> float:
    """Run a command and return the seconds of processor time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "bot", *arguments], env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
