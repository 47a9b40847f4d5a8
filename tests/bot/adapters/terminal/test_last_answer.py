"""`/open`, `/copy` and `/why`: what can be done with the last answer."""

from __future__ import annotations

import base64
import dataclasses
import io
import stat
from pathlib import Path

import pytest
from rich.console import Console

from bot.adapters.terminal.console import ConsoleChat
from bot.adapters.terminal.display import Terminal
from bot.adapters.terminal.last_answer import make_editor_arguments
from indexer.types import Location
from tests.bot.adapters.terminal.test_console import Typed, Window
from tests.fakes.parts import ANSWER, CITATION, FakeAssistant, FakeIndex, answering, event


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A working tree with the file that the answer cites."""
    (tmp_path / "tree" / "src").mkdir(parents=True)
    (tmp_path / "tree" / "src" / "session.py").write_text("x = 1\n" * 30, encoding="utf-8")
    return tmp_path / "tree"


def set_editor(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str = "vim") -> Path:
    """Name an editor that writes its arguments down; its path has a blank, and what a shell would run."""
    program, seen = folder / "my $(touch pwned) editors" / name, folder / "arguments"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > "{seen}"\n', encoding="utf-8")
    monkeypatch.chdir(folder)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("VISUAL", f"'{program}' -n")
    return seen


async def see(*lines: str, root: Path | str = "/demo", assistant: FakeAssistant | None = None) -> Window:
    window = Window(*lines, index=FakeIndex(path=str(root)), assistant=assistant)
    await window.chat.run()
    return window


async def test_open_shows_the_line_in_the_editor_without_a_shell(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = set_editor(monkeypatch, tmp_path)

    await see("how?", "/open 1", root=tree)

    assert seen.read_text(encoding="utf-8").splitlines() == ["-n", "+10", str(tree / "src/session.py")]
    assert not (tmp_path / "pwned").exists()


async def test_open_takes_the_number_as_it_stands_in_the_answer(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = set_editor(monkeypatch, tmp_path)

    await see("how?", "/open  [1]", root=tree)

    assert seen.exists()


async def test_without_an_editor_the_place_is_printed(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)

    window = await see("how?", "/open 1", root=tree)

    assert f"{tree}/src/session.py:10" in window.out.getvalue()
    assert "Set EDITOR" in window.err.getvalue()


async def test_without_a_working_tree_the_permalink_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set_editor(monkeypatch, tmp_path)
    cited = dataclasses.replace(CITATION, url="https://git.example/demo/blob/0123/src/session.py#L10-L24")
    answer = dataclasses.replace(ANSWER, citations=(cited,))

    window = await see("how?", "/open 1", root=tmp_path / "bare", assistant=FakeAssistant(*answering(answer)))

    assert f"\n{cited.url}\n" in window.out.getvalue()
    assert not seen.exists()


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", ".git/config"])
async def test_no_path_leads_out_of_the_working_tree(
    path: str, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").touch()
    (tree / ".git").mkdir()
    (tree / ".git" / "config").touch()
    seen = set_editor(monkeypatch, tmp_path)
    answer = dataclasses.replace(ANSWER, citations=(dataclasses.replace(CITATION, path=path),))

    await see("how?", "/open 1", root=tree, assistant=FakeAssistant(*answering(answer)))

    assert not seen.exists()


async def test_a_link_that_leads_out_of_the_working_tree_is_not_opened(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").touch()
    (tree / "src/session.py").unlink()
    (tree / "src/session.py").symlink_to(tmp_path / "secret")
    seen = set_editor(monkeypatch, tmp_path)

    await see("how?", "/open 1", root=tree)

    assert not seen.exists()


async def test_an_editor_that_is_not_there_is_said_with_the_place(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "no-such-editor")

    window = await see("how?", "/open 1", "/status", root=tree)

    assert "The editor no-such-editor cannot be started" in window.err.getvalue()
    assert f"{tree}/src/session.py:10" in window.out.getvalue()
    assert "demo" in window.out.getvalue()


@pytest.mark.parametrize("rest", ["", " 7", " x", " 1 2"])
async def test_a_wrong_number_lists_the_right_ones(rest: str) -> None:
    window = await see("how?", f"/open{rest}")

    assert "Write /open and the number of a citation of the last answer: 1." in window.err.getvalue()


@pytest.mark.parametrize("command", ["/open 1", "/copy", "/why"])
async def test_before_an_answer_there_is_nothing_to_do(command: str) -> None:
    assert "There is no answer yet" in (await see(command)).err.getvalue()
    assert "There is no answer yet" in (await see("how?", "/new", command)).err.getvalue()


@pytest.mark.parametrize(
    ("editor", "arguments"),
    [
        ("/usr/bin/nvim", ("+7", "/a b.py")),
        ("code", ("--goto", "/a b.py:7")),
        ("subl", ("/a b.py:7",)),
        ("ed", ("/a b.py",)),
    ],
)
def test_each_editor_is_told_the_line_in_its_own_way(editor: str, arguments: tuple[str, ...]) -> None:
    assert make_editor_arguments(editor, Path("/a b.py"), 7) == arguments


def screen(**environment: str) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=80, _environ={"TERM": "xterm"} | environment)


async def copy_on(out: Console) -> tuple[str, str]:
    """Ask and copy on a screen; what was written to it, and to standard error."""
    err = io.StringIO()
    terminal = Terminal(out=out, err=Console(file=err, width=300))
    await ConsoleChat(
        FakeIndex(), FakeAssistant(), terminal=terminal, lines=Typed("how?", "/copy"), stoppable=False
    ).run()
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue(), err.getvalue()


async def test_copy_sends_the_answer_with_its_citations_to_the_clipboard() -> None:
    written, told = await copy_on(screen())

    sent = written.partition("\x1b]52;c;")[2].partition("\x07")[0]
    assert base64.b64decode(sent).decode() == "Events are sent by `Session.send` [1].\n\n[1] src/session.py:10-24"
    assert "If it does not arrive" in told


async def test_a_terminal_that_can_surely_not_copy_gets_a_sentence_instead() -> None:
    written, told = await copy_on(screen(TERM="dumb"))

    assert "\x1b]52" not in written
    assert "has no clipboard access" in told


async def test_why_tells_route_searches_files_and_tools() -> None:
    location = Location(path="src/session.py", start_line=1, end_line=2)
    answer = dataclasses.replace(ANSWER, searched=("send events",))
    steps = (
        event("tool_start", tool="get_callers", args={}, label="", shown=""),
        event("evidence", locations=[location], urls=[None]),
    )

    window = await see("how?", "/why", assistant=FakeAssistant(*steps, *answering(answer)))

    told = window.out.getvalue()
    assert "- Route: fast\n" in told
    assert "- Files read: `src/session.py`\n" in told
    assert "- Searched for: `send events`\n" in told
    assert "- Tools: `get_callers`\n" in told
