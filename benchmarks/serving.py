"""Serves `benchmarks.chat`: a small repository, a slow model on loopback, and `citebot serve`."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Self

import psutil

from benchmarks.platforms import Platform
from tests.fakes.gemini import Failure, FakeGemini, Received, Reply
from tests.fakes.repositories import GitRepo

FILES, FUNCTIONS = 20, 10
SENTENCE = (
    "Step {}: what comes in is cut where two parts meet, each part is looked at by itself, and what is left over "
    "goes on to the next one [E1]. "
)
SENTENCES = 7  # of 29 words
LAST_WORDS = f"Step {SENTENCES}:"
WORDS_A_PIECE = 10
START_SECONDS = 60.0
END_SECONDS = 40.0
MB = 1e6


class Model:
    """Answers of about 200 words, in pieces of ten words; `pause` seconds pass before each of them."""

    def __init__(self) -> None:
        self.pause = 0.0
        text = "".join(SENTENCE.format(number + 1) for number in range(SENTENCES))
        words = re.findall(r"\S+\s*", text)
        starts = range(0, len(words), WORDS_A_PIECE)
        self._parts = tuple({"text": "".join(words[start : start + WORDS_A_PIECE])} for start in starts)

    def write(self, request: Received) -> Reply | Failure:
        """Answer a request for text; nothing else is expected to be asked for."""
        if request.is_form:
            return Failure(status=500, message="the benchmark's questions need no form to be filled in")
        return Reply(parts=self._parts, pause=self.pause)


def write_repository(root: Path) -> None:
    """Put some modules with some functions into git."""
    repository = GitRepo(root)
    for number in range(FILES):
        named = (name(number * FUNCTIONS + each) for each in range(FUNCTIONS))
        functions = (f'def {each}(text):\n    """Cut a text."""\n    return text.split("{number}")\n' for each in named)
        repository.write(f"parts/part_{number}.py", "\n\n".join(functions))
    repository.commit("Cut texts")


def name(number: int) -> str:
    """Name a function of the repository."""
    return f"cut_text_{number}"


def question(number: int) -> str:
    """Ask for one of the functions: a question that is found without the model, and answered by it."""
    return f"where is {name(number % (FILES * FUNCTIONS))} defined?"


@dataclass(frozen=True, kw_only=True)
class Office:
    """A folder with a repository and its index, and the model that is asked."""

    folder: Path
    gemini: FakeGemini
    model: Model

    @classmethod
    def furnished(cls, folder: Path, gemini: FakeGemini) -> Self:
        """Write the repository and index it."""
        office = cls(folder=folder, gemini=gemini, model=Model())
        gemini.script = office.model.write
        write_repository(folder / "repository")
        command = [sys.executable, "-m", "bot", "index", "--repo", str(folder / "repository")]
        subprocess.run(command, env=office.variables(), check=True, capture_output=True)
        return office

    def variables(self) -> dict[str, str]:
        """The environment of a citebot without a platform; none of the caller's own settings are in it."""
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path) or ".",
            "CITEBOT_HOME": str(self.folder / "home"),
            "CITEBOT_QUESTIONS_PER_MINUTE": "100000",
            "CITEBOT_QUESTIONS_PER_DAY": "100000",
            "GOOGLE_API_KEY": "a-key-of-the-benchmark",
            "GOOGLE_API_BASE_URL": self.gemini.url,
        }

    @asynccontextmanager
    async def serving(self, platform: Platform, *, module: str = "bot") -> AsyncGenerator[Serving, None]:
        """Serve until the context ends; it begins once citebot hears what is said."""
        serving = Serving.started(self, platform, module)
        try:
            await serving.hears()
            yield serving
        finally:
            await serving.end()


@dataclass(frozen=True, kw_only=True)
class Serving:
    """One process that serves, since when by the clock of its platform."""

    process: subprocess.Popen[bytes]
    platform: Platform
    since: float
    log: Path

    @classmethod
    def started(cls, office: Office, platform: Platform, module: str = "bot") -> Self:
        """Start the process; it is not connected yet."""
        numbered = (office.folder / f"serve-{number}.log" for number in count())
        log = next(path for path in numbered if not path.exists())
        command = [sys.executable, "-m", module, "serve", "--repo", str(office.folder / "repository")]
        since = platform.now()
        with log.open("wb") as errors:
            variables: Mapping[str, str] = office.variables() | dict(platform.variables())
            process = subprocess.Popen(command, env=variables, stdout=errors, stderr=errors)
        return cls(process=process, platform=platform, since=since, log=log)

    async def hears(self) -> float:
        """Wait until it is connected; return the seconds since its start."""
        try:
            await self.platform.until(self.platform.is_connected, within=START_SECONDS)
        except TimeoutError:
            raise SystemExit(f"citebot serve does not come up:\n{self.log.read_text()}") from None
        return self.platform.now() - self.since

    async def kill(self) -> None:
        """End it without a warning, and wait until the platform has noticed."""
        self.process.kill()
        self.process.wait()
        await self.platform.until(lambda: not self.platform.is_connected(), within=START_SECONDS)

    async def end(self) -> None:
        """End it in an orderly way; the platform continues meanwhile."""
        self.process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(self.process.wait, END_SECONDS)

    def memory(self) -> float:
        """Return what it holds in memory, in MB."""
        return psutil.Process(self.process.pid).memory_info().rss / MB
