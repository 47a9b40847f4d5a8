"""The tutorial's commands print what it shows, over a clone of the library that it is about.

Set TUTORIAL_CLONE to a clone of https://github.com/pallets/itsdangerous that has the tags; without one, the outputs are
not compared.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from itertools import groupby
from pathlib import Path

import pytest

from tests.documents import ROOT, read
from tests.fakes.citebot import Citebot

TAG = "2.2.0"
LEFT_OUT = "..."
CLONE = os.environ.get("TUTORIAL_CLONE", "")


def shown_outputs() -> list[tuple[str, list[str]]]:
    """Each command of a console block with the lines below it."""
    blocks = re.findall(r"^```console\n(.*?)^```", read(ROOT / "docs" / "tutorial.md"), re.MULTILINE | re.DOTALL)
    shown: list[tuple[str, list[str]]] = []
    for line in "".join(blocks).splitlines():
        if line.startswith("$ "):
            shown.append((line.removeprefix("$ "), []))
        else:
            shown[-1][1].append(line)
    return shown


def timeless(text: str) -> str:
    return re.sub(r"\b[\d.]+ s\b", "N s", text)


def missing_part(lines: list[str], printed: str) -> str:
    """Return the first of the parts between `...` that the output lacks, or has only before the part above it."""
    rest = timeless(printed)
    for is_left_out, group in groupby(lines, lambda line: line == LEFT_OUT):
        part = timeless("\n".join(group)).strip("\n")
        if not is_left_out and part:
            before, found, rest = rest.partition(part)
            if not found or (part == timeless("\n".join(lines)).strip("\n") and before.strip() + rest.strip()):
                return part
    return ""


def test_a_part_that_an_output_lacks_is_noticed() -> None:
    assert missing_part(["one", LEFT_OUT, "three in 1.2 s"], "one\ntwo\nthree in 4.0 s\n") == ""
    assert missing_part(["three", LEFT_OUT, "one"], "one\ntwo\nthree\n") == "one"
    assert missing_part(["one"], "one\ntwo\n") == "one"


@pytest.mark.skipif(not CLONE, reason="TUTORIAL_CLONE names no clone of the library")
def test_the_tutorial_shows_what_its_commands_print(
    citebot: Citebot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / "itsdangerous"
    subprocess.run(["git", "clone", "--quiet", "--branch", TAG, CLONE, str(clone)], check=True, capture_output=True)
    monkeypatch.delenv("CITEBOT_REPO")
    monkeypatch.chdir(clone)

    for command, lines in shown_outputs():
        program, *arguments = shlex.split(command)
        done = citebot(*arguments)

        assert program == "citebot"
        assert "Traceback" not in done.err
        assert missing_part(lines, done.out) == "", command
