"""Measures what a team waits for: `python -m benchmarks.chat`.

`citebot serve` runs as it does for a team, over platforms on loopback that keep to their rate limits in real time, and
with a model on loopback that writes some 200 words. The platforms share this machine with citebot: nothing of the
network is in the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from benchmarks.platforms import PLATFORMS, Platform
from benchmarks.serving import LAST_WORDS, Office, Serving, question
from tests.fakes.gemini import running_gemini

ONE_BY_ONE = 60
AT_ONCE = 30
RESTARTS = 3
QUESTIONS = 1_000
READINGS = 5  # of the memory, evenly over the questions
HANDS = 8  # questions in progress while memory is measured
PAUSE = 0.2  # seconds before each piece that the model writes
PATIENCE = 180.0

Figures = dict[str, str]


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--platform", choices=[*PLATFORMS, "all"], default="all")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="after how many to look at the memory")
    arguments = parser.parse_args()
    names = list(PLATFORMS) if arguments.platform == "all" else [arguments.platform]
    columns = [asyncio.run(measure(name, arguments.questions)) for name in names]
    print(table(names, columns))


async def measure(name: str, questions: int) -> Figures:
    """All figures of one platform, by name."""
    with tempfile.TemporaryDirectory() as folder, running_gemini() as gemini:
        office = Office.furnished(Path(folder), gemini)
        figures: Figures = {}
        for part in (one_by_one, at_once, restarts):
            async with PLATFORMS[name]() as platform:
                figures |= await part(office, platform)
        async with PLATFORMS[name]() as platform:
            return figures | await memory(office, platform, questions)


async def one_by_one(office: Office, platform: Platform) -> Figures:
    """Mention after mention: how long until anything shows."""
    office.model.pause = 0.0
    waits: list[float] = []
    async with office.serving(platform):
        await answered(platform, 0)
        for number in range(1, ONE_BY_ONE + 1):
            asked = platform.now()
            waits.append(visible(platform, await answered(platform, number))[0] - asked)
    return {"event to sign of life, p50 / p95": spread(waits, milli=True)}


async def at_once(office: Office, platform: Platform) -> Figures:
    """Many mentions in the same moment, each answer with its pace."""
    office.model.pause = PAUSE
    async with office.serving(platform):
        asked = platform.now()
        asking = [await platform.ask(question(number), number) for number in range(AT_ONCE)]
        await platform.until(lambda: all(is_whole(platform, each) for each in asking), within=PATIENCE)
        check(platform, asking)
    changes = [[at for at in visible(platform, each) if at <= settled_at(platform, each)] for each in asking]
    return {
        f"{AT_ONCE} at once: sign of life, p50 / p95": spread([each[0] - asked for each in changes]),
        f"{AT_ONCE} at once: first text, p50 / p95": spread([text_at(platform, each) - asked for each in asking]),
        f"{AT_ONCE} at once: settled, p50 / p95": spread([settled_at(platform, each) - asked for each in asking]),
        f"{AT_ONCE} at once: changes an answer, mean / most": _changes([len(each) - 1 for each in changes]),
        f"{AT_ONCE} at once: calls refused (429)": str(platform.refusals()),
        f"{AT_ONCE} at once: longest silence": f"{max(silence(asked, each) for each in changes):.1f} s",
    }


async def restarts(office: Office, platform: Platform) -> Figures:
    """A kill in the middle of an answer, and how long until it is whole."""
    paced = [await _restarted(office, platform, number, PAUSE) for number in range(RESTARTS)]
    at_once = [await _restarted(office, platform, number, 0.0) for number in range(RESTARTS, 2 * RESTARTS)]
    names = ("connected", "first call about the answer", "answer whole")
    medians = [*map(statistics.median, zip(*paced, strict=True)), statistics.median(whole for *_, whole in at_once)]
    named = zip((*names, "answer whole, model at once"), medians, strict=True)
    return {f"start after SIGKILL to {name}": f"{seconds:.1f} s" for name, seconds in named}


async def _restarted(office: Office, platform: Platform, number: int, pause: float) -> tuple[float, float, float]:
    """Kill while the model writes; from then on it pauses for that long before each piece."""
    office.model.pause = PAUSE
    dying = Serving.started(office, platform)
    await dying.hears()
    asked = await platform.ask(question(number), number)
    await platform.until(lambda: any(step.text for step in platform.steps(asked)), within=PATIENCE)
    await dying.kill()
    before = len(platform.steps(asked))
    office.model.pause = pause
    serving = Serving.started(office, platform)
    try:
        connected = await serving.hears()
        await platform.until(lambda: is_whole(platform, asked), within=PATIENCE)
        check(platform, [asked])
    finally:
        await serving.end()
    first = platform.steps(asked)[before].at
    return connected, first - serving.since, settled_at(platform, asked) - serving.since


async def memory(office: Office, platform: Platform, questions: int) -> Figures:
    """What the process holds in memory after its start, and after so many questions."""
    office.model.pause = 0.0
    platform.lift_limits()
    share = max(1, questions // READINGS)
    async with office.serving(platform, module="benchmarks.hurried") as serving:
        figures = {"memory after the start": f"{serving.memory():.0f} MB"}
        for reading in range(1, READINGS + 1):
            await _many(platform, range((reading - 1) * share, reading * share))
            figures[f"memory after {reading * share:,} questions"] = f"{serving.memory():.0f} MB"
    return figures


async def _many(platform: Platform, numbers: Sequence[int]) -> None:
    """Ask, some at a time, until all are answered."""
    left = iter(numbers)

    async def ask() -> None:
        for number in left:
            await answered(platform, number)

    await asyncio.gather(*(ask() for _ in range(HANDS)))


async def answered(platform: Platform, number: int) -> str:
    """Ask, and wait for the whole answer."""
    asked = await platform.ask(question(number), number)
    await platform.until(lambda: is_whole(platform, asked), within=PATIENCE)
    check(platform, [asked])
    return asked


def check(platform: Platform, asked: Sequence[str]) -> None:
    """Stop where what is measured is not what it is taken for."""
    for each in asked:
        if LAST_WORDS not in platform.text(each):
            raise SystemExit(f"this is not what the model wrote: {platform.text(each)}")


def is_whole(platform: Platform, asked: str) -> bool:
    """Whether an answer is complete."""
    return any(step.whole and step.visible for step in platform.steps(asked))


def visible(platform: Platform, asked: str) -> list[float]:
    """When an answer changed before people's eyes."""
    return [step.at for step in platform.steps(asked) if step.visible]


def text_at(platform: Platform, asked: str) -> float:
    """When the first words of an answer showed."""
    return next(step.at for step in platform.steps(asked) if step.visible and step.text)


def settled_at(platform: Platform, asked: str) -> float:
    """When an answer was complete."""
    return next(step.at for step in platform.steps(asked) if step.visible and step.whole)


def silence(asked: float, changes: Sequence[float]) -> float:
    """The longest time for which an answer stood still, its beginning included."""
    return max(after - before for before, after in pairwise([asked, *changes]))


def spread(seconds: Sequence[float], *, milli: bool = False) -> str:
    """The median and the 95th percentile."""
    p50, p95 = statistics.median(seconds), sorted(seconds)[int(0.95 * len(seconds))]
    return f"{p50 * 1000:.0f} / {p95 * 1000:.0f} ms" if milli else f"{p50:.1f} / {p95:.1f} s"


def _changes(counts: Sequence[int]) -> str:
    return f"{statistics.mean(counts):.1f} / {max(counts)}"


def table(names: Sequence[str], columns: Sequence[Figures]) -> str:
    """A line a figure, a column a platform."""
    lines = [("", names), *((figure, [column[figure] for column in columns]) for figure in columns[0])]
    return "\n".join(f"{figure:46}" + "".join(f"{value:>20}" for value in values) for figure, values in lines)


if __name__ == "__main__":
    main()
