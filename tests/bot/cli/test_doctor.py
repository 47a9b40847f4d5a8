"""`citebot doctor` reports on git, the data folder, the model, the indexes and the platforms."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from agent import SandboxTrial
from agent.sandbox.boxes import Bubblewrap, Landlock, PythonEnvironment
from agent.sandbox.memory_group import MemoryGroup
from bot.access import AccessPolicy
from bot.app import examine_sandboxes, open_models
from bot.cli import doctor
from bot.cli.doctor import format_report, read_slack_credentials, run_doctor
from bot.cli.main import run
from bot.errors import InboxError
from bot.monitoring.doctor_findings import DoctorFinding, make_ok, make_problem, make_warning, note, run_checks
from bot.settings import GuardTable, McpTable, SandboxTable, Settings, TokenTable
from bot.storage.database import INBOX_FILE
from indexer.errors import StorageLocked
from indexer.subprocesses import start_confined_async
from indexer.types import IndexStatus
from tests.fakes.answerer import FakeRepositories
from tests.fakes.citebot import Citebot
from tests.fakes.classifier import make_classifier
from tests.fakes.discord import FakeDiscord
from tests.fakes.gemini import Failure, FakeGemini, running_gemini, says
from tests.fakes.loopback.web_service import serving_json
from tests.fakes.parts import FakeIndex, FakeOpening
from tests.fakes.slack import FakeSlack

KEY = "AIza-a-very-secret-key"


# How findings are told


def test_findings_are_lines_with_what_to_do_below() -> None:
    told = format_report(
        [make_ok("All is well."), make_warning("It is slow.", "Wait."), note("Not seen.")], as_json=False
    )

    assert told.ok
    assert told.output.splitlines() == [
        "ok       All is well.",
        "warning  It is slow.",
        "         -> Wait.",
        "note     Not seen.",
        "",
        "no problems, 1 warning.",
    ]


def test_a_problem_makes_it_fail() -> None:
    told = format_report([make_problem("It is gone."), make_problem("This too.")], as_json=False)

    assert not told.ok
    assert told.output.endswith("2 problems, no warnings.")


def test_findings_as_json_are_one_object() -> None:
    told = format_report([make_problem("It is gone.", "Bring it back.")], as_json=True)

    finding = {"level": "problem", "what": "It is gone.", "advice": "Bring it back."}
    assert json.loads(told.output) == {"ok": False, "findings": [finding]}


def test_a_finding_cannot_steer_the_terminal_or_begin_a_line() -> None:
    told = format_report([make_problem("a\x1b[31mb\nok       c")], as_json=False)

    assert told.output.splitlines()[0] == "problem  a\N{REPLACEMENT CHARACTER}[31mb ok c"


async def test_a_check_that_cannot_be_made_is_a_problem_beside_the_others() -> None:
    async def broken() -> Sequence[DoctorFinding]:
        raise InboxError("The disk is full.")

    async def denied() -> Sequence[DoctorFinding]:
        raise PermissionError(13, "Permission denied")

    async def well() -> Sequence[DoctorFinding]:
        return [make_ok("All is well.")]

    found = await run_checks([broken, well, denied])

    assert [each.level for each in found] == ["problem", "ok", "problem"]
    assert found[0].what == "The disk is full."
    assert "Permission denied" in found[2].what


@given(st.text("0123456789abcdef", min_size=6), st.text("XYZ .:/"), st.text("XYZ .:/"))
async def test_no_finding_quotes_a_secret(secret: str, before: str, after: str) -> None:
    async def careless() -> Sequence[DoctorFinding]:
        return [make_problem(f"{before}{secret}{after}", f"Use {secret}.")]

    (found,) = await run_checks([careless], secrets=["", secret])

    assert (found.what, found.advice) == (f"{before}***{after}", "Use ***.")


# Git and the data folder


async def test_git_is_there_with_its_version() -> None:
    (found,) = await doctor.check_git()

    assert found.level == "ok"
    assert found.what.startswith("git is installed: 2.")


async def test_a_git_that_is_missing_is_to_be_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    (found,) = await doctor.check_git()

    assert (found.level, found.what) == ("problem", "git cannot be run (No such file or directory).")


async def test_a_data_folder_is_made_and_left_empty(tmp_path: Path) -> None:
    (found,) = await doctor.check_data_folder(tmp_path / "a" / "b")

    assert found.level in {"ok", "warning"}
    assert list((tmp_path / "a" / "b").iterdir()) == []


async def test_a_data_folder_that_cannot_be_written_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    (found,) = await doctor.check_data_folder(tmp_path / "file" / "home")

    assert found.level == "problem"
    assert "is not writable (Not a directory)" in found.what
    assert "CITEBOT_HOME" in found.advice


@pytest.mark.parametrize(("free", "level"), [(10**9, "ok"), (10**9 - 1, "warning"), (10**8 - 1, "problem")])
def test_little_room_is_a_warning_and_hardly_any_a_problem(free: int, level: str) -> None:
    assert doctor.check_disk_space(Path("/data"), free).level == level


async def test_a_message_database_is_looked_at_where_there_is_one(tmp_path: Path) -> None:
    (tmp_path / INBOX_FILE).write_text("no database at all, whatever its name says")

    assert await doctor.check_inbox(tmp_path / "missing", None) == []
    (found,) = await run_checks([partial(doctor.check_inbox, tmp_path, None)])

    assert found.level == "problem"
    assert "is damaged. Move it away" in found.what


# The classifier of the guard


async def examined_guard(home: Path, guard: GuardTable) -> list[DoctorFinding]:
    """The findings about a classifier."""
    settings = Settings(home=home, guard=guard)
    found = await run_doctor(settings, home, open_app=FakeOpening(), call_model=False)
    return [each for each in found if each.what.startswith(("The classifier", "Only the rules"))]


async def test_nothing_is_said_of_a_classifier_where_there_is_none(tmp_path: Path) -> None:
    assert await examined_guard(tmp_path, GuardTable()) == []


async def test_a_classifier_that_is_not_pinned_is_told_with_the_value_to_pin(tmp_path: Path) -> None:
    pin = make_classifier(tmp_path / "model")

    (found,) = await examined_guard(tmp_path, GuardTable(classifier=tmp_path / "model"))

    assert found.level == "warning"
    assert "Only the rules judge questions" in found.what
    assert f'classifier_sha256 = "{pin}"' in found.what


async def test_a_pinned_classifier_is_well_where_it_answers_in_time(tmp_path: Path) -> None:
    pin = make_classifier(tmp_path / "model")
    table = GuardTable(classifier=tmp_path / "model", classifier_sha256=pin, classifier_ms=5000)

    (found,) = await examined_guard(tmp_path, table)

    assert found.level == "ok"
    assert "is the pinned one" in found.what


async def test_a_classifier_that_takes_too_long_is_a_warning(tmp_path: Path) -> None:
    def score(_: str) -> float:
        threading.Event().wait(0.02)
        return 0.0

    (found,) = await doctor.check_classifier(lambda: score, tmp_path, milliseconds=10)

    assert found.level == "warning"
    assert "; it may take 10." in found.what


# Indexes


class Index(FakeIndex):
    """An index of which this much is different."""

    def __init__(self, **different: Any) -> None:
        super().__init__()
        self._different = different

    async def status(self) -> IndexStatus:
        return dataclasses.replace(await super().status(), **self._different)


async def looked_at(**different: Any) -> Sequence[DoctorFinding]:
    repositories = FakeRepositories("demo")
    repositories.indexes["demo"] = Index(**different)
    return await doctor.check_indexes(repositories, now=7_200.0)


async def test_an_index_of_head_is_fine() -> None:
    assert await looked_at() == [make_ok("demo at 0123456 on main, indexed 2 hours ago.")]


@pytest.mark.parametrize(
    ("different", "says"),
    [
        ({"commits_behind": 3}, "demo at 0123456 on main, indexed 2 hours ago, 3 commits behind."),
        ({"commits_behind": None}, "Its lag behind HEAD is unknown."),
        ({"commit": None, "indexed_at": None}, "demo is not indexed yet."),
    ],
)
async def test_an_index_that_is_not_of_head_is_to_be_refreshed(different: dict[str, Any], says: str) -> None:
    (found,) = await looked_at(**different)

    assert found.level == "warning"
    assert found.what.endswith(says)
    assert "citebot index" in found.advice


async def test_warnings_of_an_index_are_passed_on() -> None:
    found = await looked_at(warnings=("The clone is shallow.",))

    assert [each.level for each in found] == ["ok", "warning"]
    assert found[1].what == "demo: The clone is shallow."


async def test_a_repository_that_fails_does_not_hide_the_others() -> None:
    class Broken(FakeIndex):
        async def status(self) -> IndexStatus:
            raise StorageLocked("Another citebot has it.")

    repositories = FakeRepositories("a", "b")
    repositories.indexes["a"] = Broken()

    found = await doctor.check_indexes(repositories, now=0.0)

    assert [(each.level, each.what.split()[0]) for each in found] == [("problem", "a:"), ("ok", "b")]


# The language model


@pytest.fixture
def gemini() -> Iterator[FakeGemini]:
    with running_gemini() as fake:
        fake.script = lambda _: says("ready")
        yield fake


async def asked(gemini: FakeGemini, *, call: bool = True, **given: str) -> Sequence[DoctorFinding]:
    """What is found about the model, with the answer to a call where one is made."""
    settings = Settings.load({"GOOGLE_API_KEY": KEY, "GOOGLE_API_BASE_URL": gemini.url, **given})
    return await run_checks(
        [partial(doctor.check_models, partial(open_models, settings), settings, call=call)], secrets=[KEY]
    )


async def test_without_a_model_answers_quote_the_code(gemini: FakeGemini) -> None:
    (found,) = await asked(gemini, GOOGLE_API_KEY="")

    assert found.level == "note"
    assert "GOOGLE_API_KEY" in found.advice


async def test_a_model_of_this_machine_is_offered_and_told_apart(gemini: FakeGemini) -> None:
    models = {"models": [{"name": "nomic-embed-text"}, {"name": "qwen3:8b"}]}
    known = {"model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40_960}}
    with serving_json({"/api/tags": models, "/api/show": known}) as (host, _):
        (offered,) = await asked(gemini, GOOGLE_API_KEY="", OLLAMA_HOST=host)
        (used,) = await asked(gemini, CITEBOT_MODEL="ollama:qwen3:8b", OLLAMA_HOST=host, call=False)
        (declined,) = await asked(gemini, CITEBOT_MODEL="none", OLLAMA_HOST=host)

    assert "use it with CITEBOT_MODEL=ollama:qwen3:8b." in offered.advice
    assert "is set up and reads up to 40,960 tokens" in used.what
    assert "ollama" not in declined.advice
    for host in ("192.0.2.1:11434", "::1", "localhost:port"):
        (elsewhere,) = await asked(gemini, GOOGLE_API_KEY="", OLLAMA_HOST=host)
        assert "ollama" not in elsewhere.advice


async def test_a_model_is_not_called_unless_that_is_wanted(gemini: FakeGemini) -> None:
    (found,) = await asked(gemini, call=False)

    assert found.what.startswith("The language model google_genai:gemini-flash-latest is set up")
    assert gemini.received == []


async def test_a_model_that_answers_is_fine(gemini: FakeGemini) -> None:
    assert await asked(gemini) == [make_ok("The language model google_genai:gemini-flash-latest answers.")]


async def test_the_small_model_is_called_as_well(gemini: FakeGemini) -> None:
    found = await asked(gemini, CITEBOT_SMALL_MODEL="google_genai:small")

    assert [each.what.split()[3] for each in found] == ["google_genai:gemini-flash-latest", "google_genai:small"]


async def test_a_key_that_is_refused_is_named_and_not_shown(gemini: FakeGemini) -> None:
    gemini.script = lambda _: Failure(status=400, message=f"API key {KEY} not valid", reason="API_KEY_INVALID")

    (found,) = await asked(gemini)

    assert found.level == "problem"
    assert "set the variable GOOGLE_API_KEY to a valid one" in found.what
    assert KEY not in found.what


async def test_a_key_that_is_missing_is_named(gemini: FakeGemini) -> None:
    (found,) = await asked(gemini, GOOGLE_API_KEY="", CITEBOT_MODEL="google_genai:some")

    assert found.level == "problem"
    assert "needs a key: set the variable GOOGLE_API_KEY" in found.what


async def test_a_model_that_another_stands_in_for_is_a_warning(gemini: FakeGemini) -> None:
    gemini.script = lambda request: says("ready") if request.model == "other" else Failure(status=404)

    (found,) = await asked(gemini, CITEBOT_FALLBACK_MODEL="google_genai:other")

    assert found.level == "warning"
    assert "google_genai:other replaces it" in found.what


# All together


@pytest_asyncio.fixture
async def fake() -> AsyncIterator[FakeSlack]:
    async with FakeSlack() as made:
        yield made


async def test_slack_is_looked_at_as_the_settings_say(fake: FakeSlack, tmp_path: Path) -> None:
    variables = {
        "CITEBOT_HOME": str(tmp_path),
        "SLACK_BOT_TOKEN": fake.bot_token,
        "SLACK_SIGNING_SECRET": fake.signing_secret,
        "SLACK_API_BASE_URL": fake.api_url,
        "SLACK_MODE": "http",
    }

    found = await run_doctor(Settings.load(variables), tmp_path, open_app=FakeOpening(), call_model=False)

    told = [each.what for each in found]
    assert "SLACK_BOT_TOKEN works: @citebot in Home." in told
    assert any(each.startswith("SLACK_SIGNING_SECRET is set.") for each in told)
    assert {each.level for each in found} == {"ok", "note", "warning"}  # it is in no channel


@pytest_asyncio.fixture
async def discord() -> AsyncIterator[FakeDiscord]:
    async with FakeDiscord() as made:
        yield made


async def told_of(discord: FakeDiscord, home: Path, **variables: str) -> list[DoctorFinding]:
    """What is found where only Discord is set up."""
    settings = Settings.load(
        {
            "CITEBOT_HOME": str(home),
            "DISCORD_TOKEN": discord.token,
            "DISCORD_API_BASE_URL": discord.api_url,
            "DISCORD_GATEWAY_URL": discord.gateway_url,
            **variables,
        }
    )
    found = await run_doctor(settings, home, open_app=FakeOpening(), call_model=False)
    others = ("Slack", "language model", "Goal runs", "andbox", "MCP")
    return [each for each in found if not any(words in each.what for words in others)]


async def test_a_discord_that_can_be_used_is_well(discord: FakeDiscord, tmp_path: Path) -> None:
    found = await told_of(discord, tmp_path)

    assert {each.level for each in found} == {"ok"}
    assert found[-1].what == "DISCORD_TOKEN works: citebot#0001."


async def test_a_message_is_posted_edited_and_deleted_where_somebody_wants_to_see_it(
    fake: FakeSlack, discord: FakeDiscord, tmp_path: Path
) -> None:
    settings, general = set_up_both(fake, discord, tmp_path), fake.add_channel("general")
    town = discord.add_channel("town")

    found = await try_live(settings, general, town)

    assert [(each.level, each.what) for each in found] == [
        ("ok", f"Slack: a message in {general} was posted, edited and deleted."),
        ("ok", f"Discord: a message in {town} was posted, edited and deleted."),
    ]
    assert [call.method for call in fake.calls if call.method.startswith("chat.")] == [
        "chat.postMessage", "chat.update", "chat.delete",
    ]  # fmt: skip
    assert [call.name for call in discord.calls if call.name.endswith("_message")] == [
        "create_message", "edit_message", "delete_message",
    ]  # fmt: skip
    assert not fake.answers(general)
    assert not discord.answers(town)


async def test_a_channel_where_citebot_may_not_write_is_told_with_what_to_do(
    fake: FakeSlack, discord: FakeDiscord, tmp_path: Path
) -> None:
    settings, closed = set_up_both(fake, discord, tmp_path), fake.add_channel("closed", bot=False)

    found = await try_live(settings, closed, discord.add_channel("hidden", bot=False))
    (nowhere,) = await try_live(settings.model_copy(update={"slack_bot_token": None}), closed)

    assert [(each.level, each.what.partition(" a message")[0]) for each in found] == [
        ("problem", "Slack: citebot could not post"), ("problem", "Discord: citebot could not post"),
    ]  # fmt: skip
    assert all("Invite citebot" in each.advice for each in found)
    assert nowhere.what == f"Slack is not set up, so nothing was posted in {closed}."


def set_up_both(fake: FakeSlack, discord: FakeDiscord, home: Path) -> Settings:
    return Settings.load(
        {
            "CITEBOT_HOME": str(home),
            "SLACK_BOT_TOKEN": fake.bot_token,
            "SLACK_API_BASE_URL": fake.api_url,
            "DISCORD_TOKEN": discord.token,
            "DISCORD_API_BASE_URL": discord.api_url,
            "DISCORD_GATEWAY_URL": discord.gateway_url,
        }
    )


async def try_live(settings: Settings, *channels: str) -> Sequence[DoctorFinding]:
    """What is found in channels alone."""
    found = await run_doctor(settings, settings.home, open_app=FakeOpening(), call_model=False, live=channels)
    return [each for each in found if any(channel in each.what for channel in channels)]


async def test_a_discord_without_intent_and_server_says_where_to_click(discord: FakeDiscord, tmp_path: Path) -> None:
    discord.portal.privileged.clear()
    discord.remove_bot()
    found = await told_of(discord, tmp_path)

    content, nowhere = found[-2:]
    assert (content.level, nowhere.level) == ("problem", "problem")
    assert "switch Message Content Intent on" in content.what
    assert f"Invite it: https://discord.com/oauth2/authorize?client_id={discord.bot_id}" in nowhere.what


async def test_what_discord_leaves_out_on_purpose_is_a_note(discord: FakeDiscord, tmp_path: Path) -> None:
    discord.portal.privileged.clear()
    found = await told_of(discord, tmp_path, DISCORD_MESSAGE_CONTENT="off")

    assert found[-1].level == "note"
    assert found[-1].what.startswith("Message Content Intent is not asked for")


async def test_a_discord_token_that_is_refused_is_a_problem(discord: FakeDiscord, tmp_path: Path) -> None:
    found = await told_of(discord, tmp_path, DISCORD_TOKEN="another.discord.token")

    assert found[-1].level == "problem"
    assert "choose Bot > Reset Token" in found[-1].what
    assert "another.discord.token" not in str(found)


async def test_a_discord_that_is_away_is_a_problem_at_once(discord: FakeDiscord, tmp_path: Path) -> None:
    discord.faults.http("get_current_user", 503)
    found = await told_of(discord, tmp_path)

    assert found[-1].level == "problem"
    assert "Check the network and DISCORD_API_BASE_URL" in found[-1].what


def test_slack_is_reached_at_its_own_address_unless_another_is_given() -> None:
    assert read_slack_credentials(Settings.load({})).api_url == "https://slack.com/api/"


def test_a_model_without_its_package_is_told_with_the_command(
    citebot: Citebot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITEBOT_MODEL", "mistralai:large")

    asked, checked = citebot("ask", "who calls parse_date?"), citebot("doctor")

    for told in (asked.err, checked.out):
        assert "needs the package langchain-mistralai, which is not installed. Install it: " in told
        assert "install" in told.partition("Install it: ")[2]
    assert run(["status"]) == 0


def test_with_nothing_configured_only_the_terminal_is_there(citebot: Citebot) -> None:
    told = citebot("doctor", "--json").answer

    assert told["ok"] is True
    levels = {each["what"].split(";")[0]: each["level"] for each in told["findings"]}
    assert levels["Slack is not set up."] == levels["Discord is not set up."] == "note"
    assert levels["There is no language model: answers quote the code."] == "note"
    assert any(what.startswith("shop0 at ") and level == "ok" for what, level in levels.items())


def test_outside_a_repository_everything_else_is_told_still(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["doctor"]) == 1

    told = capsys.readouterr().out
    assert "is not in a git repository" in told
    assert "Slack is not set up." in told
    assert told.endswith("1 problem, no warnings.\n")


def test_settings_that_are_wrong_are_problems(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLACK_MODE", "pigeon")
    monkeypatch.setenv("CITEBOT_FUSION", "sum")

    assert run(["doctor", "--json"]) == 1

    told = json.loads(capsys.readouterr().out)
    assert sorted(each["what"].split(":")[0] for each in told["findings"]) == ["CITEBOT_FUSION", "SLACK_MODE"]


def test_tokens_in_the_wrong_places_are_never_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = {
        "SLACK_BOT_TOKEN": "xapp-1-very-secret",
        "SLACK_APP_TOKEN": "xoxb-very-secret two",
        "GOOGLE_API_KEY": KEY,
    }
    for variable, value in secrets.items():
        monkeypatch.setenv(variable, value)

    assert run(["--debug", "doctor"], open_app=FakeOpening()) == 1

    captured = capsys.readouterr()
    assert "SLACK_BOT_TOKEN holds an app-level token" in captured.out
    assert not any(value in captured.out + captured.err for value in secrets.values())


# The sandbox


def make_trial(mechanism: str, problem: str = "", advice: str = "") -> SandboxTrial:
    made = Bubblewrap if mechanism == "bubblewrap" else Landlock
    sandbox = made(start_confined_async, PythonEnvironment())
    return SandboxTrial(sandbox=sandbox, problem=problem, advice=advice)


BOUNDED = dataclasses.replace(make_trial("bubblewrap"), group=MemoryGroup(way="systemd"))
REFUSED = make_trial("bubblewrap", "bwrap: setting up uid map: Permission denied", "Load the profile.")


@pytest.mark.parametrize(
    ("trials", "level", "said", "advice"),
    [
        ([BOUNDED], "ok", "works here: bubblewrap. Its memory is bounded by a scope of the user's systemd.", ""),
        ([REFUSED, make_trial("Landlock")], "note", "Landlock. Without a control group", "Load the profile."),
        ([REFUSED, make_trial("Landlock", "too old", "Update Linux.")], "note", "No sandbox works here",
         "Load the profile. Update Linux."),
    ],
)  # fmt: skip
async def test_which_sandbox_holds_is_told_and_what_keeps_a_better_one_from_it(
    trials: Sequence[SandboxTrial], level: str, said: str, advice: str
) -> None:
    async def try_all() -> Sequence[SandboxTrial]:
        return trials

    (found,) = await doctor.check_sandbox(try_all)

    assert (found.level, found.advice) == (level, advice)
    assert said in found.what
    assert [each.problem in found.what for each in trials] == [True] * len(trials)


@pytest.mark.parametrize(
    ("people", "model", "level", "said"),
    [
        ((), "ollama:x", "note", "Goal runs are off in chat: nobody may start them."),
        (
            ("slack:U1", "role:dev"),
            "ollama:x",
            "ok",
            "Goal runs may be started in chat by slack:U1, role:dev; they run",
        ),
        (("*", "slack:U1"), "ollama:x", "ok", "by everybody; they run"),
        (("slack:U1",), "none", "warning", "by slack:U1, but none starts without a language model."),
    ],
)
async def test_whether_goal_runs_are_on_in_chat_is_told_and_for_whom(
    people: tuple[str, ...], model: str, level: str, said: str
) -> None:
    settings = Settings(access=AccessPolicy(run=people), model=model)

    (found,) = await doctor.check_chat_goals(settings)

    assert found.level == level
    assert said in found.what


async def test_an_environment_that_is_none_is_a_problem_that_says_how_to_make_one(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", sandbox=SandboxTable(python=tmp_path))

    (found,) = await run_checks([partial(doctor.check_sandbox, partial(examine_sandboxes, settings))])

    assert found.level == "problem"
    assert f"{tmp_path}, which python below [sandbox] names, is no virtual environment" in found.what
    assert "python3 -m venv" in found.what


# MCP


async def test_it_says_who_may_use_mcp_and_where(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = tuple(
        TokenTable(person=person, sha256=digit * 64) for person, digit in (("slack:A", "0"), ("slack:B", "1"))
    )
    (off,) = await doctor.check_mcp(McpTable())
    (local,) = await doctor.check_mcp(McpTable(tokens=tokens))
    (named,) = await doctor.check_mcp(McpTable(tokens=tokens, hosts=("bot.example",)))
    monkeypatch.setattr(doctor, "is_installed", lambda: False)
    (optional,) = await doctor.check_mcp(McpTable())
    (missing,) = await doctor.check_mcp(McpTable(tokens=tokens))

    assert (off.level, optional.level, missing.level) == ("note", "note", "warning")
    assert "no token is listed" in off.what
    assert "2 tokens of 2 people" in local.what
    assert "only from this machine" in local.what
    assert "called as bot.example" in named.what
    assert "[mcp]" in missing.advice
