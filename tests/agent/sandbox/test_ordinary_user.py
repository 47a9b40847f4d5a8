"""The sandbox also holds where citebot is an ordinary user: a sample, for test runs that are root's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agent.sandbox.box_folders import find_user
from tests.agent.sandbox.surroundings import SYSTEM_PATH, Surroundings
from tests.waiting import LIMIT_SECONDS

ROOT = Path(__file__).parents[3]
NEEDED = (
    "agent/__init__.py", "agent/errors.py", "indexer/__init__.py", "indexer/lazy_names.py",
    "indexer/subprocesses.py",
)  # fmt: skip
CITEBOT = """
import asyncio, json, os, sys
from pathlib import Path
from agent.sandbox.box_folders import choose_folder
from agent.sandbox.boxes import Bubblewrap
from agent.sandbox.boxes import PythonEnvironment
from agent.sandbox.boxes import Landlock
from agent.sandbox.sandbox import SandboxCommand, SandboxLimits
from agent.sandbox.boxes import try_sandbox
from indexer.subprocesses import start_confined_async

HOSTILE = '''
import os, sys
for attempt in (
    lambda: print("read", open(sys.argv[1] + "/mine").read()),
    lambda: print("written", open(sys.argv[1] + "/planted", "w")),
    lambda: print("signalled", os.kill(int(sys.argv[2]), 0)),
    lambda: os.mkdir("shut", 0),
    lambda: [os.chmod(folder, 0) for folder in (os.environ["HOME"], os.environ["TMPDIR"], ".")],
):
    try:
        attempt()
    except OSError:
        pass
print(os.getuid(), "tried")
'''

GREEDY = '''
import os, time
held = []
for _ in range(10):
    held.append(open("f", "wb", buffering=0)); os.unlink("f"); held[-1].write(bytes(10 << 20))
time.sleep(10)
'''

async def main():
    folder = choose_folder(Path.cwd())
    mechanism = {"bubblewrap": Bubblewrap, "landlock": Landlock}[sys.argv[1]]
    trial = await try_sandbox(mechanism(start_confined_async, PythonEnvironment()), folder)
    if trial.problem:
        return {"problem": trial.problem}
    Path("mine").write_text("secret")
    tree = folder / "copy" / "tree"
    tree.mkdir(parents=True, mode=0o700)
    command = SandboxCommand(argv=["python3", "-c", HOSTILE, str(Path.cwd()), str(os.getpid())])
    runs = [await trial.sandbox.run(command, tree, SandboxLimits(seconds=20, processes=64)) for _ in range(2)]
    greedy = SandboxCommand(argv=["python3", "-c", GREEDY])
    ended = await trial.sandbox.run(greedy, tree, SandboxLimits(seconds=8, processes=64, disk_bytes=50 << 20))
    return {
        "greedy": ended.ending, "user": os.getuid(),
        "said": [run.stdout.text for run in runs], "codes": [run.exit_code for run in runs],
        "left": sorted(str(path.relative_to(folder)) for path in folder.rglob("*")), "files": sorted(os.listdir()),
    }

print(json.dumps(asyncio.run(main())))
"""
OLD = "import sys; sys.exit(sys.version_info < (3, 11))"


@pytest.mark.parametrize("mechanism", ["bubblewrap", "landlock"])
def test_a_hostile_command_of_an_ordinary_user_gets_nowhere(surroundings: Surroundings, mechanism: str) -> None:
    user = find_user()
    if user is None:
        pytest.skip("all other tests of the sandbox run as an ordinary user here")
    if subprocess.run(["python3", "-c", OLD], env={"PATH": SYSTEM_PATH}, check=False).returncode:
        pytest.skip(f"the python3 in {SYSTEM_PATH}, which others may run too, is too old for citebot")
    program = surroundings.root / f"program-{mechanism}"
    for name in NEEDED:
        (program / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, program / name)
    shutil.copytree(ROOT / "agent/sandbox", program / "agent/sandbox", ignore=shutil.ignore_patterns("__pycache__"))
    place = program / "place"
    place.mkdir()
    for path in (program, *program.rglob("*")):
        os.chown(path, user, user)

    done = subprocess.run(
        ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all",
         "--", "python3", "-c", CITEBOT, mechanism],
        cwd=place, env={"PATH": SYSTEM_PATH, "PYTHONPATH": str(program)}, capture_output=True, text=True, check=False,
        timeout=LIMIT_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    if "problem" in told:
        pytest.skip(f"{mechanism} cannot be used here: {told['problem']}")

    inside = 1000 if mechanism == "bubblewrap" else user
    assert told == {
        "greedy": "files",
        "user": user,
        "said": [f"{inside} tried\n"] * 2,
        "codes": [0, 0],
        "left": ["copy", "copy/tree", "copy/tree/shut"],
        "files": ["mine", "sandbox"],
    }
