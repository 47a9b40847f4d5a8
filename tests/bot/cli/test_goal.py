"""`citebot goal` before a Gemini with a script: real repositories, the real sandbox, and the patch as people get it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.errors import SandboxUnavailable
from agent.sandbox.boxes import Bubblewrap
from bot.maintenance.goal_run_files import GoalRunFiles
from tests.agent.sandbox.surroundings import list_processes
from tests.fakes.citebot import Citebot, Done, run_citebot
from tests.fakes.gemini import FakeGemini, calls, running_gemini
from tests.fakes.prepared_python import prepared_python
from tests.fakes.repositories import GitRepo
from tests.forks import ForkServer
from tests.selection import mark_all_but
from tests.waiting import block_until

FAULTY = "def parse(text):\n    return [int(part) for part in text.split(',')]\n"
MENDED = "def parse(text):\n    return [int(part) for part in text.split(',') if part]\n"
TESTS = "from parser import parse\n\n\ndef test_empty():\n    assert parse('') == []\n"


@pytest.fixture
def gemini(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGemini]:
    with running_gemini() as fake:
        monkeypatch.setenv("GOOGLE_API_KEY", "key-of-the-test")
        monkeypatch.setenv("GOOGLE_API_BASE_URL", fake.url)
        yield fake


@pytest.fixture(scope="module")
def python() -> Iterator[Path]:
    with prepared_python() as folder:
        yield folder


@pytest.fixture
def repo(tmp_path: Path, python: Path, monkeypatch: pytest.MonkeyPatch) -> GitRepo:
    made = GitRepo(tmp_path / "parser")
    made.write("parser.py", FAULTY)
    made.write("test_parser.py", TESTS)
    made.commit()
    config = tmp_path / "citebot.toml"
    config.write_text(f'[sandbox]\npython = "{python}"\n')
    monkeypatch.setenv("CITEBOT_CONFIG", str(config))
    return made


def goal(citebot: Citebot, repo: GitRepo, *arguments: str) -> Done:
    return citebot("goal", *arguments, "--repo", str(repo.root))


def refuse_name_spaces(*_: object) -> None:
    """Refuse what bubblewrap needs, as many containers do."""
    raise SandboxUnavailable("bwrap: No permissions to create new namespace")


@pytest.mark.parametrize("mechanism", mark_all_but(["whichever works"], ["whichever works", "Landlock"]))
def test_a_failing_test_is_mended_and_the_patch_on_standard_output_applies(
    citebot: Citebot, repo: GitRepo, gemini: FakeGemini, monkeypatch: pytest.MonkeyPatch, mechanism: str
) -> None:
    if mechanism == "Landlock":
        monkeypatch.setattr(Bubblewrap, "_make_launch", refuse_name_spaces)
    gemini.replies.extend(
        [
            calls(("bash_exec", {"command": "cat parser.py"})),
            calls(("file_write", {"path": "parser.py", "content": MENDED})),
        ]
    )

    done = goal(citebot, repo, "pytest", "accept empty input", "--select", "test_parser.py", "--yes")

    if done.out == "" and "Landlock: " in done.err:
        pytest.skip(f"no sandbox can be used here: {done.err[-300:]}")
    assert done.code == 0, done
    assert f"in a sandbox ({mechanism if mechanism == 'Landlock' else ''}" in done.err
    subprocess.run(["git", "apply"], cwd=repo.root, input=done.out, text=True, check=True)
    assert (repo.root / "parser.py").read_text() == MENDED
    assert "$ cat parser.py" in done.err
    assert "Reached" in done.err


@pytest.mark.exhaustive
def test_a_patch_gets_to_programs_byte_by_byte(
    forks: ForkServer, repo: GitRepo, gemini: FakeGemini, tmp_path: Path
) -> None:
    before = b"# -*- coding: latin-1 -*-\r\n# caf\xe9\x0c\x1b[2J\r\n" + FAULTY.encode()
    (repo.root / "parser.py").write_bytes(before)
    repo.commit()
    gemini.replies.append(calls(("bash_exec", {"command": "sed -i 's/)]/) if part]/; s/caf/Caf/' parser.py"})))

    with (tmp_path / "patch").open("wb") as patch:
        fork = forks.start(run_citebot, "goal", *SELECTED, "--repo", str(repo.root), stdout=patch.fileno())
    assert fork.wait() == 0

    subprocess.run(["git", "apply", str(tmp_path / "patch")], cwd=repo.root, check=True)
    assert (repo.root / "parser.py").read_bytes() == before.replace(b")]", b") if part]").replace(b"caf", b"Caf")


@pytest.mark.exhaustive
def test_what_a_person_reads_gives_no_orders_to_their_terminal(
    citebot: Citebot, repo: GitRepo, gemini: FakeGemini, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write = calls(("file_write", {"path": "parser.py", "content": f"{MENDED}# \x1b[2J\x1b]0;title\x07\n"}))
    gemini.replies.extend([write, write])

    verdict = goal(citebot, repo, *SELECTED, "--patch", str(tmp_path / "fix.patch"))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    patch = goal(citebot, repo, *SELECTED)

    assert b"\x1b[2J" in (tmp_path / "fix.patch").read_bytes()
    assert "\x1b[2J" not in verdict.out + verdict.err + patch.out
    assert "+# \N{REPLACEMENT CHARACTER}[2J" in patch.out
    assert "The patch contains characters that a terminal cannot show. --patch FILE" in patch.err


def test_nothing_runs_that_nobody_has_approved(citebot: Citebot, repo: GitRepo, gemini: FakeGemini) -> None:
    done = goal(citebot, repo, "pytest", "accept empty input", "--select", "test_parser.py")

    assert (done.code, done.out) == (1, "")
    assert "It is reached when this succeeds: `python -m pytest test_parser.py`" in done.err
    assert "Nothing was run: it was not approved. Add --yes to approve it." in done.err
    assert gemini.received == []


@pytest.mark.exhaustive
def test_a_run_that_gives_up_fails_with_its_reason_and_writes_the_patch_so_far(
    citebot: Citebot, repo: GitRepo, gemini: FakeGemini, tmp_path: Path
) -> None:
    gemini.replies.append(calls(("file_write", {"path": "notes.txt", "content": "token = 'ghp_" + 36 * "a" + "'\n"})))
    patch = tmp_path / "fix.patch"

    done = goal(
        citebot, repo, "pytest", "accept empty input", "--select", "test_parser.py", "--max-iterations", "1", "--yes",
        "--patch", str(patch),
    )  # fmt: skip

    assert done.code == 1
    assert "**Not reached.**" in done.out
    assert "its 1 iteration is used up" in done.out
    assert "ghp_" not in done.out + done.err
    assert b"+token = 'ghp_" in patch.read_bytes()
    assert patch.stat().st_mode & 0o777 == 0o600


def test_a_false_claim_is_shown_by_a_test_as_json(citebot: Citebot, repo: GitRepo, gemini: FakeGemini) -> None:
    test = (
        "from parser import parse\n\n\n"
        "def call():\n    return parse('1')\n\n\n"
        "def test_claim_holds():\n    assert call() == ['1']\n\n\n"
        "def test_claim_does_not_hold():\n    assert call() != ['1']\n"
    )
    gemini.replies.append(calls(("file_write", {"path": "test_citebot_claim.py", "content": test})))

    done = goal(citebot, repo, "claim", "parse('1') returns texts", "--yes", "--json")

    answer = json.loads(done.out)
    assert done.code == 0
    assert (answer["achieved"], answer["details"]["verdict"]) == (True, "false")
    assert answer["changed"] == ["test_citebot_claim.py"]
    assert answer["commands"] == ["python -m pytest test_citebot_claim.py"]


def test_a_refusal_is_json_where_json_is_wanted(citebot: Citebot, repo: GitRepo, gemini: FakeGemini) -> None:
    unapproved = goal(citebot, repo, "pytest", "x", "--select", "test_parser.py", "--json")
    unreachable = goal(citebot, repo, "pytest", "x", "--select", "nowhere.py", "--yes", "--json")

    assert json.loads(unapproved.out)["error"].startswith("Nothing was run")
    assert "nowhere.py" in json.loads(unreachable.out)["error"]
    assert (unapproved.code, unreachable.code, gemini.received) == (1, 1, [])


def test_named_files_with_changes_that_are_not_committed_are_told(
    citebot: Citebot, repo: GitRepo, gemini: FakeGemini
) -> None:
    repo.write("test_parser.py", TESTS + "# more\n")

    for arguments in (
        ("pytest", "x", "--select", "test_parser.py::test_empty"),
        ("lint", "x", "--path", "./test_parser.py"),
        ("command", "x", "--", "sh", "-c", "cat", "/etc/passwd", "../x", "test_parser.py"),
    ):
        done = citebot("goal", arguments[0], "--repo", str(repo.root), *arguments[1:])
        assert "Left out: the uncommitted changes in test_parser.py. Commit them first." in done.err


def test_without_a_model_it_says_that_it_needs_one(
    citebot: Citebot, repo: GitRepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITEBOT_MODEL", "none")

    done = goal(citebot, repo, "pytest", "accept empty input", "--select", "test_parser.py", "--yes")

    assert "A goal run needs a language model" in done.complaint.splitlines()[-1]


@pytest.mark.parametrize(
    "arguments",
    [
        ["fame", "x"],
        ["pytest", " ", "--select", "a.py"],
        ["pytest", "x"],
        ["pytest", "x", "--select", "a.py", "--max-iterations", "0"],
        ["command", "x"],
        ["claim", "x", "--select", "a.py"],
        ["pytest", "x", "--select", "a.py", "--path", "b"],
    ],
)
def test_wrong_usage_exits_with_two(citebot: Citebot, repo: GitRepo, arguments: list[str]) -> None:
    assert goal(citebot, repo, *arguments).code == 2


def test_an_unknown_goal_and_missing_tests_are_told_with_what_to_write(citebot: Citebot, repo: GitRepo) -> None:
    unknown = goal(citebot, repo, "fame", "x").err
    assert "There is no goal 'fame'. There are: pytest, command, claim, types, lint." in unknown
    assert (
        "No tests are selected. Name a file, a folder or a test, as --select" in goal(citebot, repo, "pytest", "x").err
    )


WRITE = ("file_write", {"path": "parser.py", "content": MENDED})
SELECTED = ("pytest", "accept empty input", "--select", "test_parser.py", "--yes")


def waiting_command(python: Path) -> str:
    """A command that waits for a file, in the folder of the host that the sandbox shows read-only."""
    return f"until [ -e {python}/go ]; do sleep 0.05; done"


@pytest.fixture
def released(python: Path) -> Iterator[Path]:
    yield python / "go"
    (python / "go").unlink(missing_ok=True)


def interrupt(
    citebot: Citebot, forks: ForkServer, repo: GitRepo, how: signal.Signals, command: str, *arguments: str
) -> tuple[str, set[int]]:
    """Interrupt a run while it waits for a command; returns its name, and what is left of the command."""
    with forks.listening(run_citebot, "goal", *arguments, "--repo", str(repo.root)) as running:
        said = running.read_until("$ until")
        block_until(lambda: list_processes(command), "the command to begin")
        (name,) = set(re.findall(r"the goal run (\w{8})", said))
        assert "is running in another process" in goal(citebot, repo, "resume", name).complaint
        running.fork.send(how)
        rest = running.err.read()
        running.fork.wait()
    assert how == signal.SIGKILL or f"`citebot goal resume {name}` continues it." in rest
    return name, set(list_processes(command))


@pytest.mark.exhaustive
def test_a_run_that_is_interrupted_during_a_command_is_resumed_once(
    citebot: Citebot, forks: ForkServer, repo: GitRepo, gemini: FakeGemini, python: Path, released: Path
) -> None:
    command = waiting_command(python)
    gemini.replies.append(calls(WRITE, ("bash_exec", {"command": command})))
    name, left = interrupt(citebot, forks, repo, signal.SIGTERM, command, *SELECTED)
    assert not left
    again, left = interrupt(citebot, forks, repo, signal.SIGKILL, command, "resume")
    assert again == name

    with forks.listening(run_citebot, "goal", "resume", name, "--json", "--repo", str(repo.root)) as resumed:
        resumed.read_until("$ until")  # the command that is shown is about to begin
        block_until(lambda: not left & set(list_processes(command)), "the command of the killed run to end")
        block_until(lambda: list_processes(command), "the command to begin again")
        released.touch()
        out = resumed.out.read()

    assert json.loads(out)["achieved"]
    assert len(gemini.received) == 1
    assert "There is no goal run" in goal(citebot, repo, "resume", name).complaint
    assert "There is no goal run of this repository" in goal(citebot, repo, "resume").complaint


@pytest.mark.exhaustive
def test_two_runs_at_once_on_one_repository_do_not_touch_each_other(
    citebot: Citebot, forks: ForkServer, repo: GitRepo, gemini: FakeGemini, python: Path, released: Path
) -> None:
    gemini.replies.append(calls(WRITE, ("bash_exec", {"command": waiting_command(python)})))
    gemini.script = lambda _: calls(WRITE)
    with forks.listening(run_citebot, "goal", *SELECTED, "--repo", str(repo.root)) as running:
        name = re.findall(r"goal run (\w{8})", running.read_until("$ until"))[0]

        second = goal(citebot, repo, *SELECTED)
        released.touch()
        first = running.out.read()
        code = running.fork.wait()

    assert f"The goal run {name} is working on this repository as well." in second.err
    assert (second.code, code) == (0, 0)
    assert second.out == first


def test_a_run_of_another_repository_is_not_resumed_here(
    citebot: Citebot, repo: GitRepo, gemini: FakeGemini, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = GoalRunFiles(Path(os.environ["CITEBOT_HOME"]))
    with files.begin("/elsewhere", "x") as note:
        pass

    assert "Add --repo /elsewhere." in goal(citebot, repo, "resume", note.name).complaint
    for wrong in ("../x", "00000000"):
        assert "There is no goal run" in goal(citebot, repo, "resume", wrong).complaint


def test_a_run_of_which_nothing_was_saved_is_begun_again(citebot: Citebot, repo: GitRepo, gemini: FakeGemini) -> None:
    path = json.loads(citebot("status", "--json", "--repo", str(repo.root)).out)["path"]
    with GoalRunFiles(Path(os.environ["CITEBOT_HOME"])).begin(path, "x") as note:
        pass

    assert "was saved before it was interrupted" in json.loads(goal(citebot, repo, "resume", "--json").out)["error"]
    assert "There is no goal run" in goal(citebot, repo, "resume", note.name).complaint
