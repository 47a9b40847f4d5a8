"""The command line as tests call it, within their own process."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import pytest

from bot.cli.main import main, run
from tests.forks import import_all


@dataclass(frozen=True, kw_only=True)
class Done:
    """What a command said, and the code it ended with."""

    code: int
    out: str
    err: str

    @property
    def answer(self) -> dict[str, Any]:
        """The one JSON object on standard output; fails for anything else, and where the exit code belies it."""
        assert "Traceback" not in self.err
        assert self.out, self
        answer = json.loads(self.out)
        assert isinstance(answer, dict)
        assert self.code == (1 if answer.get("found") is False else 0), self
        return answer

    @property
    def paths(self) -> list[str]:
        """The paths that an answer in JSON cites; fails for anything else."""
        assert self.code == 0, self
        return [citation["path"] for citation in self.answer["citations"]]

    @property
    def complaint(self) -> str:
        """The sentence of a command that was refused; fails for anything else."""
        assert (self.code, self.out) == (1, ""), self
        assert "Traceback" not in self.err
        return self.err.splitlines()[-1].removeprefix("citebot: ")


Citebot = Callable[..., Done]


Result = TypeVar("Result")


def converse(citebot: Callable[..., Result], line: str, *arguments: str) -> Result:
    """Hold a conversation of one line, which is remembered; what `citebot ask` is asked is not."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as lines, pytest.MonkeyPatch.context() as patch:
        lines.write(line)
        lines.seek(0)
        patch.setattr("sys.stdin", lines)
        return citebot("chat", *arguments)


def warm_up() -> None:
    """Answer a first question, and import what commands import as soon as they need it."""
    from tests.fakes import dying

    dying.warm_up()
    import_all(
        "chromadb", "git", "prompt_toolkit", "bot.app", "bot.cli.ask",
        "bot.cli.conversation", "bot.serving.service", "bot.serving.platforms", "indexer.generations.pipeline",
    )  # fmt: skip


def run_citebot(*arguments: str) -> NoReturn:
    """Do what `python -m bot` does, in a process of its own."""
    sys.argv = ["citebot", *arguments]
    main()
    raise AssertionError("citebot returned")


def calling(capsys: pytest.CaptureFixture[str]) -> Citebot:
    """Return what runs a command and catches its output."""

    def call(*arguments: str) -> Done:
        capsys.readouterr()
        code = run(arguments)
        captured = capsys.readouterr()
        return Done(code=code, out=captured.out, err=captured.err)

    return call
