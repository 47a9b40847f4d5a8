"""Measures what others feel of an attack: `python -m benchmarks.attacks`.

`citebot serve` answers in a Slack on loopback, about two repositories. In one channel somebody sends what is meant to
stop it, or pushes it to a repository; meanwhile a second person asks ordinary questions, and `/healthz` is asked
again and again. For each attack: the longest round of the event loop in processor time, the longest answer of the
probe, which also tells of what holds the interpreter elsewhere, and how long the second person waited for anything.
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
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bot.offices import SlackOffice
from tests.bot.test_attacks import TWO_REPOSITORIES
from tests.fakes.attacks import FILES, MESSAGES, WAYS, Attacks, Figures, Town, push
from tests.fakes.loopback.ports import find_free_port
from tests.fakes.repositories import GitRepo
from tests.fakes.slack import FakeSlack

QUESTIONS = 20
FLOOR = 0.005  # seconds; shorter rounds are not written down
START_SECONDS = 60.0
END_SECONDS = 40.0
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
    arguments = parser.parse_args()
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
