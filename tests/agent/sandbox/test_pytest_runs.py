"""A real pytest runs in a prepared environment, and nothing that a repository makes it load gets out."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent.sandbox.box_folders import give_away
from agent.sandbox.boxes import PythonEnvironment
from agent.sandbox.sandbox import Sandbox, SandboxCommand, SandboxLimits
from indexer.subprocesses import start_confined_async
from tests.agent.sandbox.conftest import MECHANISMS
from tests.agent.sandbox.surroundings import SYSTEM_PATH, Surroundings

pytestmark = pytest.mark.exhaustive

LIMITS = SandboxLimits(seconds=30, processes=64)
PYTEST = ("python", "-m", "pytest", "-q")
INSTALLED = Path(pytest.__file__).parents[1]
PACKAGES = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments")
# Copies a key into the working copy and writes beside it, and says that it was there.
HOSTILE = """
import os
home = {home!r}
open("ran", "w").close()
try:
    open(home + "/planted", "w").close()
except OSError:
    pass
try:
    found = open(home + "/.ssh/id_ed25519").read()
except OSError:
    pass
else:
    open("stolen", "w").write(found)
"""


@dataclass(frozen=True, kw_only=True)
class HostileRepository:
    """Where a repository has its hostile code, what makes it run, and how its tests are run."""

    path: str
    beside: Mapping[str, str] = field(default_factory=dict)
    argv: tuple[str, ...] = PYTEST
    variables: Mapping[str, str] = field(default_factory=dict)


REPOSITORIES = {
    "conftest.py": HostileRepository(path="conftest.py"),
    "sitecustomize.py": HostileRepository(path="sitecustomize.py", variables={"PYTHONPATH": "."}),
    "pytest.ini": HostileRepository(path="evil.py", beside={"pytest.ini": "[pytest]\naddopts = -p evil\n"}),
    "a pytest of its own": HostileRepository(path="pytest.py"),
    "a checked-in .venv": HostileRepository(path=".venv/bin/python", argv=(".venv/bin/python", "-m", "pytest")),
}


@pytest.fixture(scope="package")
def environment(surroundings: Surroundings) -> Path:
    """A virtual environment of the system's Python with pytest, as an operator makes one."""
    root = surroundings.root / "environment"
    python = shutil.which("python3", path=SYSTEM_PATH)
    assert python is not None
    made = subprocess.run(
        [python, "-I", "-m", "venv", "--without-pip", root], umask=0o022, capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"{python} makes no virtual environment: {made.stdout}{made.stderr}")
    packages = next(root.glob("lib/python*/site-packages"))
    shutil.copy(INSTALLED / "py.py", packages)
    for name in PACKAGES:
        shutil.copytree(INSTALLED / name, packages / name, ignore=shutil.ignore_patterns("__pycache__"))
    return root


@pytest.fixture
def prepared(sandbox: Sandbox, environment: Path) -> Sandbox:
    """The mechanism, with the environment."""
    make = MECHANISMS[sandbox.mechanism.lower()]
    return make(start_confined_async, PythonEnvironment.find(environment))


def lay_out(surroundings: Surroundings, files: Mapping[str, str]) -> Path:
    """Make a working copy with files; the first line of a program tells what runs it."""
    tree = surroundings.make_working_copy()
    for name, content in files.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        path.chmod(0o700 if content.startswith("#!") else 0o600)
    for path in tree.rglob("*"):
        give_away(path)
    return tree


async def test_pytest_runs_in_the_prepared_environment(
    prepared: Sandbox, surroundings: Surroundings, environment: Path
) -> None:
    program = "import pytest, sys\n\ndef test_it(tmp_path):\n    print(sys.prefix, pytest.__file__)\n    assert not 1\n"
    tree = lay_out(surroundings, {"test_it.py": program})

    result = await prepared.run(SandboxCommand(argv=PYTEST), tree, LIMITS)

    assert (result.ending, result.exit_code) == ("exited", 1)
    assert "1 failed" in result.stdout.text
    assert f"{environment} {environment}/lib/python" in result.stdout.text


async def test_the_environment_cannot_be_changed(
    prepared: Sandbox, surroundings: Surroundings, environment: Path
) -> None:
    """Where citebot is an ordinary user, the environment belongs to whom commands run as."""
    for path in (environment / "pyvenv.cfg", environment):
        give_away(path)
    before = [(path.stat().st_mode, path.stat().st_mtime) for path in (environment, environment / "pyvenv.cfg")]
    program = (
        "import os, sys\n"
        "opened = os.open(sys.argv[1] + '/pyvenv.cfg', os.O_RDONLY)\n"
        "for attempt in (lambda: os.fchmod(opened, 0), lambda: os.utime(opened, (1, 1)),\n"
        "                lambda: os.chmod(sys.argv[1], 0), lambda: open(sys.argv[1] + '/new', 'w')):\n"
        "    try:\n"
        "        attempt()\n"
        "    except OSError:\n"
        "        pass\n"
        "print('tried')\n"
    )
    command = SandboxCommand(argv=["python", "-c", program, str(environment)])

    result = await prepared.run(command, surroundings.make_working_copy(), LIMITS)

    assert result.stdout.text == "tried\n"
    assert [(path.stat().st_mode, path.stat().st_mtime) for path in (environment, environment / "pyvenv.cfg")] == before
    assert not (environment / "new").exists()


@pytest.mark.parametrize("name", REPOSITORIES)
async def test_what_a_repository_makes_pytest_load_gets_out_outside_alone(
    prepared: Sandbox, surroundings: Surroundings, environment: Path, name: str
) -> None:
    repository = REPOSITORIES[name]
    hostile = HOSTILE.format(home=str(surroundings.home))
    shebang = "#!/usr/bin/env python3\n" if repository.path.startswith(".venv") else ""
    files = {"test_it.py": "def test_it():\n    pass\n", repository.path: shebang + hostile, **repository.beside}
    command = SandboxCommand(argv=repository.argv, variables=repository.variables)

    tree = lay_out(surroundings, files)
    said = surroundings.run_command_outside(command, tree, f"{environment}/bin{os.pathsep}{SYSTEM_PATH}")
    assert surroundings.take_planted() == ["planted"], said
    assert (tree / "stolen").read_text() == surroundings.secret

    tree = lay_out(surroundings, files)
    result = await prepared.run(command, tree, LIMITS)

    assert result.ending == "exited"
    assert (tree / "ran").exists(), result.stdout.text + result.stderr.text
    assert not (tree / "stolen").exists()
    assert surroundings.take_planted() == []
