"""The documents that people read, and the commands that they show."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCUMENTS = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").glob("*.md")),
)
_BLOCK = re.compile(r"^ *```(sh|console)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`((?:citebot|make) [a-z][^`\n]*)`")


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A command in a shell block of a document."""

    document: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(self.words)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def shown_commands() -> Iterator[Shown]:
    """Every command in the `sh` and `console` blocks; those that are joined by `&&` one by one, comments left out."""
    for path in DOCUMENTS:
        for kind, block in _BLOCK.findall(read(path)):
            lines = block.replace("\\\n", " ").splitlines()
            if kind == "console":
                lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
            for line in lines:
                for command in line.split(" && "):
                    if words := shlex.split(command, comments=True):
                        yield Shown(document=name_of(path), words=tuple(words))


def mentioned_commands() -> Iterator[tuple[str, ...]]:
    """Every `citebot ...` and `make ...` in inline code, as words."""
    for path in DOCUMENTS:
        for command in _INLINE.findall(read(path)):
            yield tuple(command.split())
