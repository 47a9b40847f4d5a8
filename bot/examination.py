"""Brings the checks of `citebot doctor` together for one set of settings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pydantic import SecretStr

from bot import checks, doctor
from bot.adapters.discord.checks import HOW_TO_ADD, WITHOUT_CONTENT
from bot.adapters.discord.workspace import DiscordAdapter
from bot.adapters.slack import checkup
from bot.adapters.slack.client import API_URL
from bot.adapters.terminal import Terminal
from bot.app import App, load_classifier, open_models, open_team_repositories
from bot.chat import INBOX_FILE
from bot.clock import Clock, SystemClock
from bot.doctor import DoctorFinding
from bot.errors import SettingsError
from bot.invocation import OpenApp
from bot.library import RepositoryLibrary
from bot.settings import GuardTable, Settings
from bot.workplaces import read_discord_options


async def run_doctor(
    settings: Settings, repository: Path, *, open_app: OpenApp | None, call_model: bool
) -> Sequence[DoctorFinding]:
    """Make all checks for the repository at a path."""
    clock = SystemClock()

    async def indexes() -> Sequence[DoctorFinding]:
        if settings.repositories:
            async with open_team_repositories(settings, repository, Terminal.standard()) as stock:
                return await checks.check_indexes(stock.library, clock.now())
        async with (open_app or App.open)(settings, repository) as app:
            name = (await app.index.status()).repository
            return await checks.check_indexes(RepositoryLibrary({name: app.index}, Terminal.standard()), clock.now())

    return await doctor.run_checks(
        [
            partial(checks.configuration, settings.remark),
            checks.check_git,
            partial(checks.check_data_folder, settings.home),
            partial(checks.check_inbox, settings.home / INBOX_FILE),
            indexes,
            partial(checks.check_models, partial(open_models, settings), call=call_model),
            partial(_classifier, settings.guard),
            partial(checkup.run_diagnostics, read_slack_credentials(settings), clock),
            partial(_discord, settings, clock),
        ],
        secrets=settings.secret_values(),
    )


def report_invalid_settings(error: SettingsError) -> Sequence[DoctorFinding]:
    """Settings that cannot be read leave nothing else to look at."""
    first, *others = str(error).splitlines()
    return [doctor.problem(line.strip()) for line in others or [first]]


def read_slack_credentials(settings: Settings) -> checkup.SlackCredentials:
    """What the settings hold for Slack."""
    return checkup.SlackCredentials(
        bot_token=_text(settings.slack_bot_token),
        app_token=_text(settings.slack_app_token),
        signing_secret=_text(settings.slack_signing_secret),
        mode=settings.slack_mode,
        api_url=settings.slack_api_base_url or API_URL,
    )


async def _classifier(guard: GuardTable) -> Sequence[DoctorFinding]:
    """Whether the classifier can be used, where there is one."""
    if guard.classifier is None:
        return []
    return await checks.classifier(partial(load_classifier, guard), guard.classifier, milliseconds=guard.classifier_ms)


async def _discord(settings: Settings, clock: Clock) -> Sequence[DoctorFinding]:
    """Whether Discord can be used; raises `BotError`s that say why it cannot."""
    if settings.discord_token is None:
        return [doctor.note("Discord is not set up.", HOW_TO_ADD)]
    async with DiscordAdapter.open(read_discord_options(settings), clock) as discord:
        found = [
            doctor.note(each) if each == WITHOUT_CONTENT else doctor.problem(each) for each in await discord.problems()
        ]
        return [doctor.ok(f"DISCORD_TOKEN works: {discord.name}."), *found]


def _text(secret: SecretStr | None) -> str:
    return secret.get_secret_value() if secret is not None else ""
