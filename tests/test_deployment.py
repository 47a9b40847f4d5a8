"""The container and the service are what docs/deploy.md says: without rights, probed, ended in time, complete."""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from bot.conversations.active_turns import DRAIN_SECONDS
from tests.fakes.loopback.web_service import Reply, Request, serving
from tests.fakes.repositories import GitRepo
from tests.waiting import LIMIT_SECONDS

ROOT = Path(__file__).parent.parent
# What scripts make the files of that are packed and read instead.
UNPACKED = ("agent/questions/intents/examples/*.txt",)
UNIT = ROOT / "docs" / "citebot.service"


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, in order, with lines that continue joined."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines if line.strip()]


def last_stage() -> dict[str, str]:
    """The last instruction of each kind in the stage that is run."""
    found = instructions()
    begin = max(place for place, (name, _) in enumerate(found) if name == "FROM")
    return dict(found[begin:])


def unit() -> configparser.SectionProxy:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(UNIT, encoding="utf-8")
    return parser["Service"]


def answer_health(status: int) -> Callable[[Request], Reply]:
    """Answer /healthz with a status."""
    return lambda request: Reply(status=status if request.path == "/healthz" else 404)


def probed(url: str) -> int:
    """Run what the container is probed with; a proxy of the surroundings must not come between."""
    program, *arguments = json.loads(last_stage()["HEALTHCHECK"].split("CMD", 1)[1])
    assert program == "python"
    environment = {"CITEBOT_WEB_PORT": str(urlsplit(url).port), "http_proxy": "http://127.0.0.1:9"}
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, check=False, timeout=LIMIT_SECONDS
    )
    return done.returncode


def test_every_file_that_the_packages_read_is_packed_with_them() -> None:
    packed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["package-data"]
    files = [path for package in packed for path in (ROOT / package).rglob("*") if path.is_file()]
    read = [path.relative_to(ROOT) for path in files if path.suffix not in {".py", ".pyc", ".md"}]
    globs = [f"{package}/{glob}" for package in packed for glob in packed[package]]
    left_out = [path for path in read if not any(path.match(glob) for glob in (*globs, *UNPACKED))]

    assert {path.suffix for path in read} >= {".sql", ".toml", ".scm"}
    assert left_out == []


def test_the_container_is_well_only_while_healthz_says_so() -> None:
    with serving(answer_health(200)) as url:
        assert probed(url) == 0
    with serving(answer_health(503)) as url:
        assert probed(url) == 1
    assert probed(url) == 1  # nobody listens there any more


def test_the_service_gives_answers_time_to_end() -> None:
    assert int(unit()["TimeoutStopSec"]) > DRAIN_SECONDS + 10
    assert unit()["SuccessExitStatus"] == "143"
    assert unit()["Type"] == "exec"


UNDER_MDWE = """
import ctypes, mmap, os, sys
if ctypes.CDLL(None, use_errno=True).prctl(65, 1, 0, 0, 0):  # PR_SET_MDWE, which children inherit
    sys.exit(77)
try:
    mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
except PermissionError:
    os.execv(sys.argv[1], sys.argv[1:])
sys.exit(78)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux forbids memory that is written and executed")
@pytest.mark.exhaustive
def test_citebot_works_where_memory_is_never_both_written_and_executed(tmp_path: Path) -> None:
    assert unit()["MemoryDenyWriteExecute"] == "yes"
    repository = GitRepo(tmp_path / "shop")
    repository.write("shop/dates.py", "def parse_date(text):\n    return text.split('-')\n")
    repository.commit("Sell things")
    citebot = [sys.executable, "-P", "-m", "bot", "ask", "--repo", str(repository.root), "where is parse_date defined?"]
    home = {"CITEBOT_HOME": str(tmp_path / "home"), "CITEBOT_MODEL": "none", "PATH": os.environ["PATH"]}

    done = subprocess.run(
        [sys.executable, "-c", UNDER_MDWE, *citebot],
        cwd=tmp_path,
        env=home | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_SECONDS,
    )

    if done.returncode == 77:
        pytest.skip("this kernel is older than 6.3")
    assert done.returncode == 0, done.stderr
    assert "shop/dates.py" in done.stdout


@pytest.mark.needs("systemd")
def test_systemd_finds_nothing_wrong_with_the_service(tmp_path: Path) -> None:
    program = shutil.which("true")
    assert program is not None
    text = UNIT.read_text(encoding="utf-8").replace("/opt/citebot/bin/citebot", program)
    (tmp_path / UNIT.name).write_text(text, encoding="utf-8")

    done = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / UNIT.name)],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_SECONDS,
    )

    assert (done.returncode, done.stderr) == (0, "")
