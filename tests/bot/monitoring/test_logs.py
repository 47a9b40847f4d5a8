"""Log lines for people and as JSON name their turn, and leave out whatever must not be in them."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.app import make_redactor
from bot.monitoring import logs
from bot.monitoring.logs import HumanFormatter, JsonFormatter
from bot.settings import Settings
from tests.fakes.gemini import Failure, running_gemini
from tests.fakes.repositories import GitRepo
from tests.fakes.served import variables
from tests.fakes.slack import FakeSlack
from tests.waiting import LIMIT_SECONDS, expect

ROOT = Path(__file__).parents[3]
# Assemble here, so that no file holds anything of the form of a secret.
GITHUB = "ghp_" + "1Ab2Cd3Ef4Gh5Ij6Kl7Mn8Op9Qr0St1Uv2Wx3"
KEY = "a-key-of-no-known-form"


def record(message: str, error: Exception | None = None) -> logging.LogRecord:
    raised = (type(error), error, error.__traceback__) if error is not None else None
    return logging.LogRecord("bot.storage.inbox", logging.WARNING, __file__, 1, message, (), raised)


@pytest.fixture
def mask() -> Callable[[str], str]:
    return make_redactor(Settings.load({"GOOGLE_API_KEY": KEY}, ROOT / "tests"))


def test_lines_that_are_held_back_are_written_afterwards_in_their_order() -> None:
    written: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            written.append(record.getMessage())

    root, kept = logging.getLogger(), Kept()
    root.addHandler(kept)
    try:
        with logs.hold_log():
            logging.getLogger("bot.storage.inbox").warning("one")
            logging.getLogger("agent.agent").warning("two")
            assert written == []
        assert written == ["one", "two"]
        logging.getLogger("bot").warning("three")
        assert written == ["one", "two", "three"]
    finally:
        root.removeHandler(kept)


def test_a_line_of_json_holds_time_level_logger_and_message(mask: Callable[[str], str]) -> None:
    told = json.loads(JsonFormatter(mask).format(record("something is odd")))

    assert told.pop("time").endswith("+00:00")
    assert told == {"level": "warning", "logger": "bot.storage.inbox", "message": "something is odd"}


@pytest.mark.parametrize("formatter", [HumanFormatter, JsonFormatter])
@pytest.mark.parametrize("secret", [KEY, GITHUB])
def test_secrets_are_masked_in_messages_and_tracebacks(formatter: Any, secret: str, mask: Callable[[str], str]) -> None:
    line = formatter(mask).format(record(f"refused: {secret}", ValueError(f"the address has {secret} in it")))

    assert secret not in line
    assert "ValueError" in line
    assert line.count("REDACTED") == 2


@given(st.text())
def test_any_message_is_one_line_of_json(text: str) -> None:
    line = JsonFormatter(lambda same: same).format(record(text.replace("%", "")))

    assert "\n" not in line
    assert isinstance(json.loads(line)["message"], str)


def test_a_message_with_a_line_break_forges_no_line() -> None:
    line = HumanFormatter(lambda same: same).format(record("odd\nERROR bot: forged\x1b[2J"))

    assert line == "WARNING bot.storage.inbox: odd\n  ERROR bot: forged\N{REPLACEMENT CHARACTER}[2J"


async def test_lines_of_a_turn_name_it_in_its_tasks_alone() -> None:
    formatter = JsonFormatter(lambda same: same)

    async def logged() -> dict[str, Any]:
        await asyncio.sleep(0)
        return json.loads(formatter.format(record("within")))  # type: ignore[no-any-return]

    with logs.log_turn("1f2e", "slack:T:C:1"):
        within = asyncio.create_task(logged())
    outside = await logged()

    assert {"run": "1f2e", "conversation": "slack:T:C:1"}.items() <= (await within).items()
    assert "run" not in outside


def test_people_are_told_the_run_at_the_end_of_the_line() -> None:
    with logs.log_turn("1f2e3d4c5b", "slack:T:C:1"):
        line = HumanFormatter(lambda same: same).format(record("odd"))

    assert line == "WARNING bot.storage.inbox: odd  (run 1f2e3d4c of slack:T:C:1)"


@pytest.mark.exhaustive
async def test_a_serving_process_logs_json_of_its_turns_without_secrets(tmp_path: Path) -> None:
    repo = GitRepo(tmp_path / f"shop-{GITHUB}")
    repo.write("shop/dates.py", 'def parse_date(text):\n    """Read a date."""\n    return text.split("-")\n')
    repo.commit("Sell things")
    with running_gemini() as gemini:
        gemini.script = lambda _: Failure(status=400, message=f"{KEY} is odd")
        async with FakeSlack() as fake:
            more = {"GOOGLE_API_KEY": KEY, "GOOGLE_API_BASE_URL": gemini.url, "CITEBOT_LOG_FORMAT": "json"}
            environment = {"PATH": os.environ["PATH"], **variables(fake, tmp_path / "data"), **more}
            lines = await logged_by(environment, fake, repo.root)

    secrets = [KEY, GITHUB, fake.bot_token, fake.app_token, fake.signing_secret]
    assert [secret for secret in secrets if secret in "".join(lines)] == []
    told = [json.loads(line) for line in lines]
    assert "In Slack as @citebot" in told[0]["message"]
    assert "Repositories: shop-[REDACTED:github]." in told[0]["message"]
    of_the_turn = [each for each in told if "language model" in each["message"] and each["level"] == "warning"]
    assert of_the_turn
    assert all(each["run"] and each["conversation"].startswith("slack:") for each in of_the_turn)


async def logged_by(environment: dict[str, str], fake: FakeSlack, repository: Path) -> list[str]:
    """Serve, have one question answered, end; return the lines on standard error."""
    fake.limits.enabled = False
    ann = fake.add_user("ann")
    channel = fake.add_channel("general", members=(ann,))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bot", "serve", "--repo", str(repository),
        cwd=ROOT, env=environment, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        await fake.until(lambda: fake.socket.connections, within=LIMIT_SECONDS)
        thread = await fake.mention(channel, ann, "where is parse_date defined?")
        whole = lambda: [seen for seen in fake.answers(channel, thread) if "citebot_rate" in seen.buttons]  # noqa: E731
        await fake.until(whole, within=LIMIT_SECONDS)
        process.send_signal(signal.SIGTERM)
        async with expect("logged by"):
            _, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return errors.decode().splitlines()
