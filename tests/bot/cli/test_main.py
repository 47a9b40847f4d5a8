"""The command line: what goes to standard output, what to standard error, and the exit codes."""

from __future__ import annotations

import dataclasses
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from agent import LOOKUPS
from bot.cli.command_groups import LOOKUP_TITLES
from bot.cli.main import cli, run
from bot.errors import PostRefused
from indexer.errors import EmptyRepository, StorageLocked
from indexer.types import FileEntry, Filters, IndexStatus
from tests.fakes.citebot import Citebot
from tests.fakes.parts import ANSWER, HEAD, FakeAssistant, FakeCode, FakeIndex, FakeOpening, answering, event, saying
from tests.fakes.repositories import GitRepo

COMMANDS = {
    name: cli.get_command(CONTEXT, name) for CONTEXT in [click.Context(cli)] for name in cli.list_commands(CONTEXT)
}
HIT = {"path": "src/session.py", "start_line": 10, "end_line": 24, "symbol": "Session.send", "score": 0.5}


def said(capsys: pytest.CaptureFixture[str]) -> tuple[Any, str]:
    """Standard output as one JSON value, and standard error."""
    captured = capsys.readouterr()
    return json.loads(captured.out), captured.err


def test_version_is_told() -> None:
    assert run(["--version"]) == 0


def test_help_has_every_command_in_its_group_with_a_whole_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0

    told = capsys.readouterr().out
    groups = {section.splitlines()[0]: section.splitlines()[1:] for section in told.split("\n\n")[-4:]}
    listed = [line.split()[0] for lines in groups.values() for line in lines]
    assert list(groups) == ["Ask:", "Look up:", "Set up:", "Operate:"]
    assert sorted(listed) == sorted(COMMANDS)
    assert [line for line in told.splitlines()[1:] if len(line) > 80 or line.endswith("...")] == []


def test_help_names_the_lookups_as_the_registry_does() -> None:
    titles = {each.known_as.get("api", each.name.replace("_", "-")): each.title for each in LOOKUPS}

    assert {name: title for name, title in titles.items() if name not in cli.commands} == LOOKUP_TITLES


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_ends_with_an_example_that_it_understands(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([name, "--help"]) == 0

    example = shlex.split(capsys.readouterr().out.splitlines()[-1].removeprefix("  Example: "))
    command = COMMANDS[name]
    assert example[:2] == ["citebot", name]
    while isinstance(command, click.Group):
        command = command.commands[example.pop(2)]
    assert command is not None
    assert command.make_context(name, example[2:]).params


@pytest.mark.parametrize(
    "arguments",
    [
        *[["search"], ["search", "a", "-k", "0"], ["search", "a", "--type", "x"], ["search", "--batch", "nowhere"]],
        *[["search", "a", "--glob", glob] for glob in ("!", "\\", "[z-a]", "[[:alpha:]")],
    ],
)
def test_wrong_usage_exits_with_two(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments, open_app=FakeOpening()) == 2
    assert capsys.readouterr().out == ""


def test_ask_as_json_prints_one_object_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ask", "how are events sent?", "--json"], open_app=FakeOpening()) == 0

    answer, complaints = said(capsys)
    assert complaints == ""
    assert answer == {
        "answer": "Events are sent by `Session.send` [1].",
        "found": True,
        "citations": [{"path": "src/session.py", "start_line": 10, "end_line": 24, "commit": HEAD, "url": None}],
        "repository": "demo",
        "commit": HEAD,
        "intent": "new_question",
        "route": "fast",
        "model": None,
        "seconds": 0.25,
    }


def test_an_answer_that_shows_the_closest_places_only_is_printed_and_exits_with_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assistant = FakeAssistant(*answering(dataclasses.replace(ANSWER, found=False)))

    assert run(["ask", "where is the moon?"], open_app=FakeOpening(assistant=assistant)) == 1

    captured = capsys.readouterr()
    assert captured.out.startswith("Events are sent by")
    assert captured.err == ""


def test_ask_prints_plain_text_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ask", "how are events sent?"], open_app=FakeOpening()) == 0

    assert capsys.readouterr().out == "Events are sent by `Session.send` [1].\n\n[1] src/session.py:10-24\n"


def test_ask_forgets_its_thread_afterwards() -> None:
    opening = FakeOpening()

    run(["ask", "how?"], open_app=opening)

    assert opening.assistant.forgotten == [thread for _, thread in opening.assistant.asked]


def test_a_run_without_an_answer_fails_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    failed = dataclasses.replace(ANSWER, text="The disk is full.", route="failed")
    assistant = FakeAssistant(event("error", message="The disk is full.", error="X"), event("answer", answer=failed))

    assert run(["ask", "how?", "--json"], open_app=FakeOpening(assistant=assistant)) == 1

    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "citebot: The disk is full.\n")


def test_a_question_before_the_first_index_builds_it(capsys: pytest.CaptureFixture[str]) -> None:
    index = FakeIndex(commit=None, current=False)

    assert run(["ask", "how?"], open_app=FakeOpening(index)) == 0

    assert index.refreshes == [False]
    assert capsys.readouterr().err == "Indexing the repository ...\n"


def test_a_question_after_a_commit_refreshes_quietly(capsys: pytest.CaptureFixture[str]) -> None:
    index = FakeIndex(commit="f" * 40, current=False)

    assert run(["ask", "how?"], open_app=FakeOpening(index)) == 0

    assert index.refreshes == [False]
    assert capsys.readouterr().err == ""


def test_a_failed_refresh_answers_from_the_earlier_index(capsys: pytest.CaptureFixture[str]) -> None:
    index = FakeIndex(commit="f" * 40, current=False, error=StorageLocked("Another citebot is indexing."))

    assert run(["ask", "how?", "--json"], open_app=FakeOpening(index)) == 0

    assert said(capsys)[1] == "Using the index at fffffff. Another citebot is indexing.\n"


def test_an_error_is_one_sentence_and_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    index = FakeIndex(commit=None, current=False, error=EmptyRepository("There is no commit yet. Make one first."))

    assert run(["ask", "how?"], open_app=FakeOpening(index)) == 1

    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "citebot: There is no commit yet. Make one first.\n")


@pytest.mark.parametrize(
    ("defect", "sentence"),
    [
        (
            IndexError("list index out of range"),
            "An internal error occurred (IndexError: list index out of range).",
        ),
        (OSError(28, "No space left on device"), "[Errno 28] No space left on device."),
    ],
)
def test_a_defect_is_one_sentence_and_no_traceback(
    defect: Exception, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    class Defective(FakeIndex):
        async def is_current(self) -> bool:
            raise defect

    assert run(["ask", "how?", "--json"], open_app=FakeOpening(Defective())) == 1

    captured = capsys.readouterr()
    assert captured.out == ""
    assert sentence in captured.err
    assert captured.err.count("\n") == 1


def test_debug_lets_the_traceback_through() -> None:
    index = FakeIndex(commit=None, current=False, error=EmptyRepository("There is no commit yet."))

    with pytest.raises(EmptyRepository):
        run(["--debug", "ask", "how?"], open_app=FakeOpening(index))


def test_wrong_settings_are_told_before_anything_opens(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITEBOT_FUSION", "sum")
    opening = FakeOpening()

    assert run(["status"], open_app=opening) == 1
    assert capsys.readouterr().err.startswith("citebot: CITEBOT_FUSION: ")
    assert opening.opened == []


@pytest.mark.parametrize(
    ("arguments", "variable", "expected"),
    [
        (["status"], None, "."),
        (["status"], "by-variable", "by-variable"),
        (["--repo", "before", "status"], "by-variable", "before"),
        (["--repo", "same", "status", "--repo", "same"], "by-variable", "same"),
        (["index", "by-path"], "by-variable", "by-path"),
    ],
)
def test_the_nearest_word_on_the_repository_wins(
    arguments: list[str], variable: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if variable:
        monkeypatch.setenv("CITEBOT_REPO", variable)
    opening = FakeOpening()

    assert run(arguments, open_app=opening) == 0
    assert opening.opened[0][1].path == Path(expected).absolute()


def test_of_two_repositories_none_is_chosen_for_a_command_that_takes_one(capsys: pytest.CaptureFixture[str]) -> None:
    opening = FakeOpening()

    assert run(["--repo", "before", "status", "--repo", "after"], open_app=opening) == 2
    assert "Two repositories are given: before before the command and after after it" in capsys.readouterr().err
    assert opening.opened == []


def test_a_tilde_stands_for_the_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    opening = FakeOpening()

    run(["status", "--repo", "~/code"], open_app=opening)

    assert opening.opened[0][1].path == tmp_path / "code"


def test_index_reports_what_it_did_and_passes_warnings_on(capsys: pytest.CaptureFixture[str]) -> None:
    index = FakeIndex(warnings=("The clone is shallow.",))

    assert run(["index", ".", "--full"], open_app=FakeOpening(index)) == 0

    captured = capsys.readouterr()
    assert index.refreshes == [True]
    assert captured.out == "Indexed demo at 0123456: 12 files, 1,234 chunks in 0.5 s (3 parsed, 1 gone).\n"
    assert captured.err == "Indexing the repository ...\nThe clone is shallow.\n"


def test_index_as_json_is_the_whole_report(capsys: pytest.CaptureFixture[str]) -> None:
    run(["index", "--json"], open_app=FakeOpening())

    report, _ = said(capsys)
    assert (report["repository"], report["commit"], report["files"], report["seconds"]) == ("demo", HEAD, 12, 0.5)


def test_search_as_json_holds_the_hits(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", "send an event", "--json"], open_app=FakeOpening()) == 0
    assert said(capsys) == ({"hits": [HIT]}, "")


def test_search_as_text_is_a_hit_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", "send"], open_app=FakeOpening()) == 0
    assert (
        capsys.readouterr().out
        == "src/session.py:10-24  Session.send  0.500  Send one event.  def send(self, event): ...\n"
    )


def test_a_hit_shows_the_line_that_the_query_is_about(citebot: Citebot) -> None:
    shown = citebot("search", "growing delays", "-k", "1").out

    assert shown.startswith("shop/payments.py:")
    assert shown.endswith('  """Send a payment, and retry with growing delays while the bank is busy."""\n')


def test_a_signature_over_several_lines_is_shown_as_one(citebot: Citebot, tmp_path: Path) -> None:
    repo = GitRepo(tmp_path / "wide")
    repo.write("wide.py", "def stretch(\n    first: int,\n    second: int,\n) -> int:\n    return first\n")
    repo.commit()

    assert citebot("symbols", "stretch", "--repo", str(repo.root)).out == (
        "wide.py:1-5  function  def stretch(first: int, second: int) -> int\n"
    )


def test_search_hands_its_options_on() -> None:
    opening = FakeOpening()

    run(
        "search send -k 3 --lang go --lang lua --type doc --folder src --glob **/*.md --mode lexical".split(),
        open_app=opening,
    )

    filters = Filters(languages=("go", "lua"), source_types=("doc",), folders=("src",), patterns=("**/*.md",))
    assert opening.index.code.searches == [("send", 3, filters, "lexical")]


def test_an_unknown_language_is_told_beside_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    class Bilingual(FakeCode):
        async def files(self) -> Sequence[FileEntry]:
            return [FileEntry(path="a", language=name, source_type="code", lines=1) for name in ("python", "go")]

    opening = FakeOpening()
    opening.index.code = Bilingual()

    assert run(["search", "nowhere", "--lang", "Klingon", "--lang", "Go"], open_app=opening) == 1
    assert capsys.readouterr().err == "No file of demo at 0123456 is in klingon. There are: go, python.\n"


@pytest.mark.parametrize("command", ["search", "callers"])
def test_nothing_found_is_said_and_exits_with_one(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "nowhere", "--json"], open_app=FakeOpening()) == 1

    found, note = said(capsys)
    assert (found.pop({"search": "hits"}.get(command, command)), found["coverage"]["files"]) == ([], 0)
    assert "demo at 0123456" in note


def test_symbols_are_listed_with_their_signature(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["symbols", "send"], open_app=FakeOpening()) == 0
    assert capsys.readouterr().out == "src/session.py:10-24  method  def send(self, event: Event) -> None\n"


@pytest.mark.parametrize("written", ["send()", "`send`", "send?"])
def test_a_name_may_be_written_as_in_a_sentence(written: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["symbols", written], open_app=FakeOpening()) == 0
    assert "def send" in capsys.readouterr().out


@pytest.mark.parametrize(("command", "ending"), [("callers", "svg"), ("callers", "png"), ("callees", "mmd")])
def test_calls_are_drawn_in_a_file_beside_the_list(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str, ending: str
) -> None:
    picture = tmp_path / f"calls.{ending}"

    run([command, "send", "--graph", str(picture)], open_app=FakeOpening())

    assert f"Drawn in {picture}." in capsys.readouterr().err
    content = picture.read_bytes()
    assert content.startswith({"svg": b"<svg", "png": b"\x89PNG", "mmd": b"graph LR"}[ending])
    assert ending == "png" or b"send" in content


def test_a_drawing_in_another_form_is_wrong_usage(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["callers", "send", "--graph", str(tmp_path / "calls.gif")], open_app=FakeOpening()) == 2
    assert ".svg, .png or .mmd" in capsys.readouterr().err


def test_callers_at_module_level_are_marked(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["callers", "send"], open_app=FakeOpening()) == 0
    expected = "src/main.py:7  (module level)  (one of several of that name)  def send(self, event): ...\n"
    assert capsys.readouterr().out == expected


def test_callers_as_json_name_both_ends(capsys: pytest.CaptureFixture[str]) -> None:
    run(["callers", "send", "--json"], open_app=FakeOpening())

    (call,) = said(capsys)[0]["callers"]
    assert (call["path"], call["line"], call["caller"], call["ambiguous"]) == ("src/main.py", 7, None, True)
    assert call["callee"]["qualified_name"] == "Session.send"


def test_a_function_that_calls_nothing_is_not_called_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["callees", "send", "--json"], open_app=FakeOpening()) == 1

    found, sentence = said(capsys)
    assert sentence == "send calls no function known by name in the 0 files of demo at 0123456.\n"
    nothing = {"left_out": {}, "uncommitted": [], "mentioned_in": [], "is_behind": False}
    assert found == {"callees": [], "coverage": {"commit": HEAD, "files": 0, **nothing}}


def test_batch_answers_good_lines_and_reports_bad_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [b'{"id": "a", "query": "send"}', b"", b"oops", b'{"id": 2, "query": "nowhere"}', b"\xff", b'{"id": 3}']
    (tmp_path / "queries.jsonl").write_bytes(b"\n".join(lines))

    assert run(["search", "--batch", "queries.jsonl"], open_app=FakeOpening()) == 1

    captured = capsys.readouterr()
    assert [json.loads(line) for line in captured.out.splitlines()] == [
        {"id": "a", "hits": [HIT]},
        {"id": 2, "hits": []},
    ]
    assert [line.split(":")[0] for line in captured.err.splitlines()] == [
        "line 3",
        "line 5",
        "line 6",
        "3 lines could not be read.",
    ]


def test_batch_with_good_lines_alone_succeeds(tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_text('{"id": "a", "query": "nowhere"}\r\n', encoding="utf-8")

    assert run(["search", "--batch", "queries.jsonl"], open_app=FakeOpening()) == 0


def test_status_before_the_first_index_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    index = FakeIndex(commit=None, current=False)

    assert run(["status"], open_app=FakeOpening(index)) == 0

    assert "not yet: the first question or `citebot index` indexes it" in capsys.readouterr().out
    assert index.refreshes == []


def test_status_as_json_holds_every_field(capsys: pytest.CaptureFixture[str]) -> None:
    run(["status", "--json"], open_app=FakeOpening())

    status, _ = said(capsys)
    assert (status["repository"], status["commit"], status["skipped"]) == ("demo", HEAD, {"binary": 2})


def test_a_pipe_is_answered_line_by_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    opening = FakeOpening()
    (tmp_path / "lines").write_text("first?\n\nsecond?", encoding="utf-8")
    with (tmp_path / "lines").open(encoding="utf-8") as lines:
        monkeypatch.setattr("sys.stdin", lines)

        assert run([], open_app=opening) == 0

    assert [question for question, _ in opening.assistant.asked] == ["first?", "second?"]
    assert len({thread for _, thread in opening.assistant.asked}) == 1
    assert capsys.readouterr().out == "Events are sent by `Session.send` [1].\n\n[1] src/session.py:10-24\n\n" * 2


def test_control_characters_of_a_repository_reach_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assistant = FakeAssistant(*answering(saying("a\x1b[2Jb\x9b31m [bold]c[/bold] \u202e")))

    run(["ask", "how?"], open_app=FakeOpening(assistant=assistant))

    out = capsys.readouterr().out
    assert not {"\x1b", "\x9b", "\u202e"} & set(out)
    assert "[bold]c[/bold]" in out


def test_an_interrupt_exits_as_a_shell_expects() -> None:
    class Interrupted(FakeIndex):
        async def is_current(self) -> bool:
            raise KeyboardInterrupt

    assert run(["ask", "how?"], open_app=FakeOpening(Interrupted())) == 130


def test_an_error_within_a_group_of_tasks_is_its_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    class Grouped(FakeIndex):
        async def status(self) -> IndexStatus:
            raise ExceptionGroup("unhandled errors in a TaskGroup", [PostRefused("Copy the token anew.")])

    assert run(["status"], open_app=FakeOpening(Grouped())) == 1
    assert capsys.readouterr().err == "citebot: Copy the token anew.\n"


@pytest.mark.parametrize(
    ("editor", "table", "started_by"), [("cursor", "mcpServers", {}), ("vscode", "servers", {"type": "stdio"})]
)
def test_the_lines_for_an_editor_start_this_citebot_from_any_folder(
    editor: str, table: str, started_by: dict[str, str], citebot: Citebot
) -> None:
    program = f"{sys.prefix}/bin/citebot"

    written = citebot("mcp", "--print-config", editor).answer
    typed = citebot("mcp", "--print-config", "claude", "--repo", "my shop").out

    server = {**started_by, "command": program, "args": ["mcp", "--repo", "${workspaceFolder}"]}
    assert written == {table: {"citebot": server}}
    assert shlex.split(typed) == ["claude", "mcp", "add", "citebot", "--", program, "mcp", "--repo", "my shop"]


def test_a_language_is_listed_with_what_is_read_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["languages", ".vue"]) == 0
    assert capsys.readouterr().out == "Vue             the code in it, and uses in its markup  (.vue)\n"


def test_a_language_that_is_unknown_is_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["languages", "klingon"]) == 2
    assert "No language is called 'klingon'." in capsys.readouterr().err
