"""Measures what others feel of an attack: `python -m benchmarks.attacks`; and of long texts, `--texts`.

`citebot serve` answers in a Slack on loopback, about two repositories. In one channel somebody sends what is meant to
stop it, or pushes it to a repository; meanwhile a second person asks ordinary questions, and `/healthz` is asked
again and again. For each attack: the longest round of the event loop in processor time, the longest answer of the
probe, which also tells of what holds the interpreter elsewhere, and how long the second person waited for anything.

With `--texts`, every reader of text from outside is given texts of one length and of twice that, from which the tests
count the work of Python alone: the table has the processor time of the piece that takes longest, and by how much it
grows, so that work inside C (tree-sitter, RE2, Pillow) is seen as well. Linear is 2, quadratic 4.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bot.pictures.flow import Flow, FlowBox
from bot.pictures.flow_rendering import render_flow
from indexer.parsing.file_parser import parse_file
from tests.bot.offices import SlackOffice
from tests.bot.test_attacks import TWO_REPOSITORIES
from tests.entry_points import ENTRY_POINTS, PIECES, Read, read_all
from tests.fakes.attacks import FILES, MESSAGES, WAYS, Attacks, Figures, Town, push
from tests.fakes.loopback.ports import find_free_port
from tests.fakes.repositories import GitRepo
from tests.fakes.slack import FakeSlack

QUESTIONS = 20
FLOOR = 0.005  # seconds; shorter rounds are not written down
START_SECONDS = 60.0
END_SECONDS = 40.0
LENGTH = 10_000  # characters of a long text, and twice as many
WATCHED = 3  # pieces that take longest, which are measured more exactly
TRIES = 3
# Beside those of the tests: grammars, whose parsers are C.
SUFFIXES = (".c", ".cpp", ".cs", ".java", ".js", ".kt", ".php", ".rb", ".rs")
COLUMNS = ("attack", "loop, longest", "probe, longest", "sign of life, p50", "p95")


@dataclass(frozen=True, kw_only=True)
class Row:
    """What an attack did."""

    name: str
    longest: float
    figures: Figures

    def cells(self) -> list[str]:
        """Write the columns of the table."""
        waits = self.figures.waits
        p95 = statistics.quantiles(waits, n=20)[-1]
        longest = f"{self.longest * 1000:.0f} ms" if self.longest else f"< {FLOOR * 1000:.0f} ms"
        seconds = [self.figures.probe, statistics.median(waits), p95]
        return [self.name, longest, *(f"{each * 1000:.0f} ms" for each in seconds)]


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a pattern for the names of the attacks")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="of the second person, during each attack")
    parser.add_argument("--texts", action="store_true", help="measure readers of long texts instead")
    arguments = parser.parse_args()
    if arguments.texts:
        measure_texts(re.compile(arguments.only))
        return
    asyncio.run(measure(re.compile(arguments.only), arguments.questions))


async def measure(only: re.Pattern[str], questions: int) -> None:
    """Print a row for each attack as soon as it is over."""
    with tempfile.TemporaryDirectory() as folder:
        shop = write_repositories(Path(folder))
        pushes = {name: push(shop, path, content) for name, (path, content) in FILES.items()}
        attacks: Attacks = {"nothing": rest, **MESSAGES, **WAYS, **pushes}
        print_line(COLUMNS)
        print_line(["---"] * len(COLUMNS))
        async with serving(Path(folder)) as (town, gauge):
            for name, attack in attacks.items():
                if only.search(name):
                    gauge.write_text("")
                    figures = await town.endure(attack, questions=questions)
                    held = [float(line) for line in gauge.read_text().split()]
                    print_line(Row(name=name, longest=max(held, default=0.0), figures=figures).cells())


def measure_texts(only: re.Pattern[str]) -> None:
    """Print a row for each reader of text from outside: its slowest piece at one length, and at twice that."""
    print_line(["reader", "piece", f"{LENGTH:,}", f"{2 * LENGTH:,}", "growth"])
    print_line(["---"] * 5)
    parsers: dict[str, Read] = {f"a file{suffix}": partial(parse_file, f"a{suffix}") for suffix in SUFFIXES}
    for name, reader in {**ENTRY_POINTS, **parsers, "a picture": draw_text}.items():
        if only.search(name):
            read = read_all(reader)
            slowest = sorted(PIECES, key=lambda piece, read=read: time_reading(read, piece, 2 * LENGTH))[-WATCHED:]  # type: ignore[misc]
            times = {each: measure_growth(read, each) for each in slowest}
            piece, (short, long) = max(times.items(), key=lambda item: item[1][1])
            seconds = (f"{each * 1000:.1f} ms" for each in (short, long))
            print_line([name, f"`{piece!r}`".replace("|", "\\|"), *seconds, f"{long / short:.1f}"])


def measure_growth(read: Read, piece: str) -> tuple[float, float]:
    """Return the shortest times of a few that a text takes, and twice the text."""
    short, long = (min(time_reading(read, piece, times * LENGTH) for _ in range(TRIES)) for times in (1, 2))
    return short, long


def time_reading(read: Read, piece: str, length: int) -> float:
    """Return the processor time of this thread that a text takes."""
    text = (piece * length)[:length]
    began = time.thread_time()
    read(text)
    return time.thread_time() - began


def draw_text(text: str) -> object:
    """Draw a box with a text."""
    return render_flow(
        Flow(title=text, verb="calls", boxes=(FlowBox(key="a", label=text, note=text),), lines=()), "png"
    )


async def rest(_: Town) -> list[str]:
    """Do no harm."""
    return []


def write_repositories(folder: Path) -> GitRepo:
    """Make two small repositories, and return the one that is asked about."""
    shop, website = GitRepo(folder / "shop"), GitRepo(folder / "website")
    shop.write("shop/dates.py", 'def parse_date(text):\n    """Read a date."""\n    return text.split("-")\n')
    website.write("web/pages.py", 'def show_page(name):\n    """Show a page."""\n    return name\n')
    for repository in (shop, website):
        repository.commit()
    (folder / "citebot.toml").write_text(TWO_REPOSITORIES.format(folder))
    return shop


@asynccontextmanager
async def serving(folder: Path) -> AsyncGenerator[tuple[Town, Path]]:
    """Serve until the context ends; it begins once a first question is answered. The file is the gauge."""
    gauge, port = folder / "gauge", find_free_port()
    async with FakeSlack() as fake:
        office = SlackOffice(fake)
        variables: Mapping[str, str] = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent.parent), *filter(None, sys.path)]),
            "CITEBOT_CONFIG": str(folder / "citebot.toml"),
            "CITEBOT_HOME": str(folder / "home"),
            "CITEBOT_QUESTIONS_PER_MINUTE": "100000",
            "CITEBOT_QUESTIONS_PER_DAY": "100000",
            "CITEBOT_WEB_PORT": str(port),
            "CITEBOT_METRICS_PORT": "0",
            "CITEBOT_STALL_SECONDS": str(FLOOR),
            "GAUGE": str(gauge),
            **office.variables,
        }
        process = start(variables, folder / "log")
        try:
            await fake.until(lambda: office.is_connected, within=START_SECONDS)
            town = Town(fake, f"http://127.0.0.1:{port}")
            await town.wait_of_bob()
            yield town, gauge
        finally:
            process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(process.wait, END_SECONDS)


def start(variables: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    """Start a process that serves, and writes down what holds its loop."""
    command = [sys.executable, "-m", "benchmarks.gauged", "serve"]
    with log.open("wb") as errors:
        return subprocess.Popen(command, env=dict(variables), stdout=errors, stderr=errors)


def print_line(cells: list[str] | tuple[str, ...]) -> None:
    """Print a line of the table."""
    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
