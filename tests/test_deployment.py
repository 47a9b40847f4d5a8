"""The container and the service are what the README says: without rights, probed, ended in time, complete."""

from __future__ import annotations

import configparser
import http.server
import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bot.cli import cli
from bot.conversations import DRAIN_SECONDS
from bot.settings import variable_names

ROOT = Path(__file__).parent.parent
UNIT = ROOT / "docs" / "citebot.service"
LIMIT = 20


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, in order, with lines that go on joined."""
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


@contextmanager
def answering(status: int) -> Iterator[int]:
    """A server on the loopback that answers /healthz with a status; yields its port."""

    class Health(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/healthz" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Health) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            serving.join(5)


def probed(port: int) -> int:
    """Run what the container is probed with; a proxy of the surroundings must not come between."""
    program, *arguments = json.loads(last_stage()["HEALTHCHECK"].split("CMD", 1)[1])
    assert program == "python"
    environment = {"CITEBOT_WEB_PORT": str(port), "http_proxy": "http://127.0.0.1:9"}
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, check=False, timeout=LIMIT
    )
    return done.returncode


def test_both_stages_begin_from_the_slim_image() -> None:
    bases = [value.split()[0] for name, value in instructions() if name == "FROM"]

    assert bases == ["python:3.12-slim", "python:3.12-slim"]


def test_the_container_runs_as_nobody_special() -> None:
    user = last_stage()["USER"].split(":")

    assert all(part.isdecimal() and int(part) > 0 for part in user)


def test_the_container_serves_unless_told_otherwise() -> None:
    assert json.loads(last_stage()["ENTRYPOINT"]) == ["citebot"]
    (command,) = json.loads(last_stage()["CMD"])
    assert command in cli.commands
    assert last_stage()["STOPSIGNAL"] == "SIGTERM"


def test_the_data_folder_of_the_container_is_its_volume() -> None:
    variables = dict(pair.split("=", 1) for pair in last_stage()["ENV"].split())

    assert variables["CITEBOT_HOME"] == last_stage()["VOLUME"]
    assert {name for name in variables if name.startswith("CITEBOT_")} <= set(variable_names())


def test_git_is_in_the_container() -> None:
    assert any(name == "RUN" and re.search(r"apt-get install .*\bgit\b", value) for name, value in instructions())


def test_everything_that_is_copied_exists_and_is_let_through() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    copied = [
        source
        for name, value in instructions()
        if name == "COPY" and "--from" not in value
        for source in value.split()[:-1]
    ]

    assert {"pyproject.toml", "constraints.txt", "agent", "bot", "indexer"} <= set(copied)
    for source in copied:
        assert (ROOT / source).exists()
        assert f"!{source}" in ignored
    assert ignored[1] == "*"


def test_the_container_is_well_only_while_healthz_says_so() -> None:
    with answering(200) as port:
        assert probed(port) == 0
    with answering(503) as port:
        assert probed(port) == 1
    assert probed(port) == 1  # nobody listens there any more


def test_the_service_gives_answers_time_to_end() -> None:
    assert int(unit()["TimeoutStopSec"]) > DRAIN_SECONDS + 10
    assert unit()["SuccessExitStatus"] == "143"
    assert unit()["Type"] == "exec"


def test_the_service_is_locked_in_but_for_its_data_folder() -> None:
    service = unit()

    assert (service["User"], service["ProtectSystem"], service["NoNewPrivileges"]) == ("citebot", "strict", "yes")
    assert service["Environment"] == f"CITEBOT_HOME=%S/{service['StateDirectory']}"
    program, command = service["ExecStart"].split()
    assert Path(program).name == "citebot"
    assert command in cli.commands


def test_systemd_finds_nothing_wrong_with_the_service(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("there is no systemd here")
    program = shutil.which("true")
    assert program is not None
    text = UNIT.read_text(encoding="utf-8").replace("/opt/citebot/bin/citebot", program)
    (tmp_path / UNIT.name).write_text(text, encoding="utf-8")

    done = subprocess.run(
        [analyze, "verify", str(tmp_path / UNIT.name)], capture_output=True, text=True, check=False, timeout=LIMIT
    )

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["Dockerfile", "docs/citebot.service"])
def test_no_secret_and_no_address_is_written_down(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")

    assert re.findall(r"https?://|xox[bap]-|--index-url|--extra-index-url|ADD ", text) == []
