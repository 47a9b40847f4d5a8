"""citebot started inside a repository whose files are named as what Python, git and citebot would load or run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.repositories import GitRepo
from tests.selection import mark_all_but
from tests.waiting import LIMIT_SECONDS

CITEBOT = Path(sys.executable).parent / "citebot"

# Whatever is imported on the way: by Python itself, by citebot and by its libraries.
MODULES = """multiprocessing concurrent subprocess json re re2 tree_sitter tree_sitter_python git gitdb sitecustomize
    usercustomize ormsgpack numpy click asyncio logging signal selectors resource fcntl pathspec pydantic sqlite3 site
    encodings importlib orjson zlib typing traceback readline platform uuid indexer agent""".split()
MODULE = "open({mark!r}, 'a').write(__name__ + chr(10))\n"
PROGRAM = "#!/bin/sh\necho {name} >> {mark}\nexit 1\n"
MANY = 520
QUESTION = ["ask", "where is handle_17?", "--json"]


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """A file that whatever runs of the repository's own code leaves a line in."""
    return tmp_path / "mark"


@pytest.fixture
def hostile(tmp_path: Path, mark: Path) -> GitRepo:
    """A repository with many files to parse, and with code that must not run."""
    repository = GitRepo(tmp_path / "shop")
    for name in MODULES:
        repository.write(f"{name}.py", MODULE.format(mark=str(mark)))
        repository.write(f"{name}/__init__.py", MODULE.format(mark=str(mark)))
    for name in ("git", "env", "ssh", "python", "python3", "uname"):
        program = repository.write(f"bin/{name}", PROGRAM.format(name=name, mark=mark))
        program.chmod(0o755)
    for name in ("env", "ssh", "python", "python3", "uname"):
        repository.link(name, f"bin/{name}")
    for number in range(MANY):
        repository.write(f"src/module_{number}.py", f"def handle_{number}():\n    return {number}\n")
    repository.commit()
    return repository


def run_in(folder: Path, *command: str | Path, path: str = "{}") -> subprocess.CompletedProcess[str]:
    """Run a command in a folder as a person would, with no configuration but a data folder beside it."""
    dropped = ("PYTHON", "CITEBOT_", "GIT_", "GOOGLE_", "SLACK_", "DISCORD_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    environment = kept | {"CITEBOT_HOME": str(folder.parent / "home"), "PATH": path.format(os.environ["PATH"])}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS
    )


@pytest.mark.parametrize(
    "path", mark_all_but(["bin:.:{}"], ["{}", ":{}", "bin:.:{}"]), ids=["usual PATH", "empty entry", "relative entries"]
)
@pytest.mark.exhaustive
def test_citebot_runs_nothing_of_the_repository(hostile: GitRepo, mark: Path, path: str) -> None:
    done = run_in(hostile.root, CITEBOT, *QUESTION, path=path)

    assert done.returncode == 0, done.stderr
    assert "src/module_17.py" in done.stdout
    assert not mark.exists(), mark.read_text()


@pytest.mark.parametrize("options", [["-P"], []], ids=["with -P", "without"])
@pytest.mark.exhaustive
def test_the_package_as_a_program_runs_nothing_of_the_repository(
    hostile: GitRepo, mark: Path, options: list[str]
) -> None:
    """Without `-P` Python itself would load a module `bot` from there, before citebot can say otherwise."""
    if options:
        hostile.write("bot/__init__.py", MODULE.format(mark=str(mark)))
        hostile.write("bot/__main__.py", MODULE.format(mark=str(mark)))

    done = run_in(hostile.root, sys.executable, *options, "-m", "bot", *QUESTION)

    assert done.returncode == 0, done.stderr
    assert "src/module_17.py" in done.stdout
    assert not mark.exists(), mark.read_text()


ENVIRONMENT_FILES = {
    "numbers that are none": b"CHROMA_SERVER_HTTP_PORT=abc\nIS_PERSISTENT=perhaps\n",
    "no text": b"\xff\xfe\0",
    "never read to its end": None,
}


@pytest.mark.parametrize("content", ENVIRONMENT_FILES.values(), ids=ENVIRONMENT_FILES)
@pytest.mark.exhaustive
def test_a_library_reads_no_env_file_of_the_repository(tmp_path: Path, content: bytes | None) -> None:
    repository = GitRepo(tmp_path / "shop")
    repository.write("src/module_17.py", "def handle_17():\n    return 17\n")
    repository.commit()
    if content is None:
        os.mkfifo(repository.root / ".env")
    else:
        repository.write(".env", content)

    done = run_in(repository.root, CITEBOT, *QUESTION)

    assert done.returncode == 0, done.stderr
    assert "src/module_17.py" in done.stdout


# Prints every program that citebot itself starts, as Python's audit events tell: the line, the folder, the variables.
AUDITED = """
import json, sys
def tell(event, arguments):
    if event == "subprocess.Popen":
        _, line, folder, environment = arguments
        print(json.dumps([list(map(str, line)), folder, sorted(environment or ["everything"])]), file=sys.stderr)
    elif event in ("os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "pty.spawn"):
        print(json.dumps([[event], None, ["everything"]]), file=sys.stderr)
sys.addaudithook(tell)
from bot.cli.main import main
main()
"""


@pytest.mark.exhaustive
def test_every_program_is_isolated_and_begins_in_the_root_folder(hostile: GitRepo) -> None:
    done = run_in(hostile.root, sys.executable, "-P", "-c", AUDITED, *QUESTION)

    started = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("[[")]
    names = {Path(line[0]).name for line, _, _ in started}
    assert names == {"env", Path(sys.executable).name}, started
    for line, folder, variables in started:
        assert folder == "/", line
        if Path(line[0]).name == "env":
            assert line[1] == "-i"
            assert Path(next(word for word in line[2:] if "=" not in word)).name == "git"
        else:
            assert line[1] == "-I"
            assert "everything" not in variables


@pytest.mark.exhaustive
def test_isolated_parsers_take_nothing_from_variables(hostile: GitRepo, mark: Path) -> None:
    program = (
        "import os; os.environ['PYTHONPATH'] = os.getcwd(); os.environ['PYTHONSTARTUP'] = 'json.py'\n"
        "from bot.cli.main import main; main()"
    )

    done = run_in(hostile.root, sys.executable, "-P", "-c", program, "index", "--json")

    assert json.loads(done.stdout)["files"] > MANY
    assert not mark.exists(), mark.read_text()
