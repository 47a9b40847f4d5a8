"""The doctor's checks of Slack, with the real SDK in front of the fake: tokens, scopes, channels, modes."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from bot.adapters.slack.diagnostics import (
    ESSENTIAL,
    WITHOUT,
    SlackCredentials,
    check_token_shape,
    list_bot_scopes,
    run_diagnostics,
)
from bot.monitoring.doctor_findings import DoctorFinding, Level
from tests.fakes.slack import Clock, FakeSlack

SECRET = "0123456789abcdef0123456789abcdef"


@pytest_asyncio.fixture
async def fake() -> AsyncIterator[FakeSlack]:
    """A workspace in which everything is as it should be."""
    async with FakeSlack() as made:
        made.access.scopes = set(list_bot_scopes())
        made.add_channel("general", members=(made.add_user("ann"),))
        yield made


async def looked(fake: FakeSlack, **given: Any) -> Sequence[DoctorFinding]:
    usual = SlackCredentials(bot_token=fake.bot_token, app_token=fake.app_token, api_url=fake.api_url)
    found = await run_diagnostics(dataclasses.replace(usual, **given), fake.clock)
    told = " ".join(f"{each.what} {each.advice}" for each in found)
    assert not any(secret in told for secret in (fake.bot_token, fake.app_token, fake.signing_secret))
    return found


def levels(found: Sequence[DoctorFinding]) -> set[Level]:
    return {each.level for each in found}


def bad(found: Sequence[DoctorFinding]) -> DoctorFinding:
    """The one thing that is wrong."""
    (only,) = [each for each in found if each.level in {"warning", "problem"}]
    return only


async def test_nothing_is_amiss_where_all_is_set_up(fake: FakeSlack) -> None:
    found = await looked(fake)

    assert levels(found) == {"ok", "note"}
    assert [each.what for each in found if each.level == "ok"] == [
        "SLACK_BOT_TOKEN works: @citebot in Home.",
        "The bot token has all scopes.",
        "The app is in 1 channel.",
        "SLACK_APP_TOKEN works, and Socket Mode is on.",
    ]


async def test_nobody_notices_that_the_doctor_was_here(fake: FakeSlack) -> None:
    await looked(fake)

    assert {call.method for call in fake.calls} == {"auth.test", "users.conversations", "apps.connections.open"}


async def test_it_is_said_what_cannot_be_seen_with_these_tokens(fake: FakeSlack) -> None:
    (unseen,) = [each for each in await looked(fake) if each.what.startswith("Not checked")]

    assert unseen.level == "note"
    assert "app_mention" in unseen.what
    assert "/reindex" in unseen.what
    assert "App Manifest with slack-manifest.yaml" in unseen.advice


async def test_without_slack_it_is_told_how_to_add_it() -> None:
    (only,) = await run_diagnostics(SlackCredentials(), Clock())

    assert only.level == "note"
    assert only.what == "Slack is not set up."
    assert all(each in only.advice for each in ("slack-manifest.yaml", "SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"))


@pytest.mark.parametrize("missing", ["bot_token", "app_token"])
async def test_a_token_that_is_missing_is_named_with_its_place(fake: FakeSlack, missing: str) -> None:
    found = bad(await looked(fake, **{missing: ""}))

    assert (found.level, found.what) == ("problem", f"SLACK_{missing.upper()} is not set.")
    assert found.advice.startswith("Take https://api.slack.com/apps > the app > ")


@pytest.mark.parametrize(
    ("refusal", "helps"),
    [("token_revoked", "Reinstall"), ("invalid_auth", "Copy it again")],
)
async def test_a_bot_token_that_is_no_good_is_named(fake: FakeSlack, refusal: str, helps: str) -> None:
    fake.faults.error("auth.test", refusal)

    found = bad(await looked(fake))

    assert found.what == f"SLACK_BOT_TOKEN does not work. Slack refused auth.test: {refusal}."
    assert helps in found.advice


async def test_a_token_of_a_person_is_not_taken_for_a_bots(fake: FakeSlack) -> None:
    person = {"user": "ann", "user_id": "U1ANN", "team": "Home", "team_id": "T0HOME"}
    fake._api._methods = {**fake._api._methods, "auth.test": lambda _: person}

    assert bad(await looked(fake)).what == "SLACK_BOT_TOKEN belongs to a person, not to a bot."


async def test_an_app_token_without_its_scope_is_named(fake: FakeSlack) -> None:
    fake.access.app_scopes = set()

    found = bad(await looked(fake))

    assert found.what.startswith("SLACK_APP_TOKEN does not work. Slack refused apps.connections.open: missing_scope")
    assert "with the scope connections:write" in found.advice


async def test_a_refused_connection_leads_to_socket_mode(fake: FakeSlack) -> None:
    fake.faults.error("apps.connections.open", "forbidden_team")

    assert "Socket Mode > Enable Socket Mode" in bad(await looked(fake)).advice


async def test_tokens_in_each_others_places_are_told_without_asking_slack(fake: FakeSlack) -> None:
    found = await looked(fake, bot_token=fake.app_token, app_token=fake.bot_token)

    assert [each.what for each in found if each.level == "problem"] == [
        "SLACK_BOT_TOKEN holds an app-level token, not a bot token.",
        "SLACK_APP_TOKEN holds a bot token, not an app-level token.",
    ]
    assert fake.calls == []


@pytest.mark.parametrize("scope", ["app_mentions:read", "files:write"])
async def test_a_missing_scope_says_what_does_not_work_without_it(fake: FakeSlack, scope: str) -> None:
    fake.access.scopes.discard(scope)

    found = bad(await looked(fake))

    assert found.level == ("problem" if scope in ESSENTIAL else "warning")
    assert found.what == f"The scope {scope} is missing: {WITHOUT[scope]}."
    assert f"Add an OAuth Scope: {scope}" in found.advice
    assert "Reinstall" in found.advice


async def test_a_scope_that_events_hang_on_names_them(fake: FakeSlack) -> None:
    fake.access.scopes.discard("groups:history")

    assert "Subscribe to bot events: message.groups;" in bad(await looked(fake)).advice


async def test_scopes_that_are_not_used_are_listed(fake: FakeSlack) -> None:
    fake.access.scopes |= {"users:read"}

    found = await looked(fake)

    assert levels(found) == {"ok", "note"}
    assert "Scopes that citebot does not use: users:read." in [each.what for each in found]


async def test_an_app_in_no_channel_is_to_be_invited(fake: FakeSlack) -> None:
    await fake.leave(next(iter(fake.workspace.channels)))

    found = bad(await looked(fake))

    assert (found.level, found.what) == ("warning", "The app is in no channel.")
    assert "/invite @citebot" in found.advice


async def test_channels_are_not_looked_for_without_their_scopes(fake: FakeSlack) -> None:
    fake.access.scopes -= {"channels:read", "groups:read"}

    found = [each.what for each in await looked(fake) if each.level == "note"]

    assert "The app's channels cannot be listed without channels:read and groups:read." in found


async def test_channels_are_counted_over_pages(fake: FakeSlack) -> None:
    for number in range(250):
        fake.add_channel(f"room-{number}")

    assert "The app is in 251 channels." in [each.what for each in await looked(fake)]


async def test_channels_that_cannot_be_counted_are_no_problem(fake: FakeSlack) -> None:
    fake.faults.error("users.conversations", "internal_error")

    found = bad(await looked(fake))

    assert found.level == "warning"
    assert "internal_error" in found.what


async def test_http_mode_needs_no_app_token_and_says_what_it_cannot_know(fake: FakeSlack) -> None:
    found = await looked(fake, mode="http", app_token="", signing_secret=fake.signing_secret)

    assert levels(found) == {"ok", "note"}
    assert any("Request URL https://YOUR.HOST/slack/events" in each.advice for each in found)
    assert fake.calls_of("apps.connections.open") == []


@pytest.mark.parametrize(
    ("secret", "level", "says"),
    [
        ("", "problem", "SLACK_SIGNING_SECRET is not set."),
        ("xoxb-1-2-abc", "problem", "SLACK_SIGNING_SECRET holds a bot token, not a signing secret."),
        ("short", "warning", "SLACK_SIGNING_SECRET does not look like a signing secret."),
    ],
)
async def test_http_mode_needs_the_signing_secret(fake: FakeSlack, secret: str, level: Level, says: str) -> None:
    found = bad(await looked(fake, mode="http", app_token="", signing_secret=secret))

    assert (found.level, found.what) == (level, says)
    assert "App Credentials > Signing Secret" in found.advice


async def test_a_slack_that_cannot_be_reached_is_a_problem(fake: FakeSlack) -> None:
    found = await looked(fake, api_url="http://127.0.0.1:9/api/")

    assert [each.what for each in found if each.level == "problem"] == [
        "Slack does not answer (ClientConnectorError)."
    ] * 2
    assert "SLACK_API_BASE_URL" in found[0].advice


async def test_a_slack_in_trouble_is_not_the_fault_of_a_token(fake: FakeSlack) -> None:
    fake.faults.http("auth.test", 503)
    fake.faults.error("apps.connections.open", "internal_error")

    found = [each.what for each in await looked(fake) if each.level == "problem"]

    assert found == [
        "Slack answered auth.test with the status 503.",
        "Slack refused apps.connections.open: internal_error.",
    ]


async def test_a_slack_that_asks_to_wait_is_no_problem(fake: FakeSlack) -> None:
    fake.faults.ratelimited("auth.test", retry_after=7)

    found = bad(await looked(fake))

    assert (found.level, found.what) == ("warning", "Slack was not asked: The platform asks to wait 7 seconds.")


async def test_credentials_show_no_token() -> None:
    given = SlackCredentials(bot_token="xoxb-1", app_token="xapp-1", signing_secret=SECRET)

    assert not any(part in repr(given) for part in ("xoxb", "xapp", SECRET))


@pytest.mark.parametrize(
    ("value", "held"),
    [
        ("xapp-1-A1-2-c", "holds an app-level token"),
        ("xoxp-1-2-c", "holds a user token"),
        ("xoxe.xoxp-1-c", "holds an app configuration token"),
        (SECRET, "holds a signing secret"),
        ("https://hooks.slack.com/services/T/B/c", "holds the address of a webhook"),
        ('"xoxb-1', "does not hold a bot token"),
        ("xoxb-1\n", "contains spaces"),
    ],
)
def test_what_is_no_bot_token_is_called_what_it_is(value: str, held: str) -> None:
    (found,) = check_token_shape("SLACK_BOT_TOKEN", value)

    assert found.level == "problem"
    assert found.what.startswith(f"SLACK_BOT_TOKEN {held}")


@given(st.text(min_size=12), st.sampled_from(["SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET"]))
def test_whatever_a_variable_holds_is_never_quoted(value: str, variable: Any) -> None:
    assert all(value not in f"{found.what} {found.advice}" for found in check_token_shape(variable, value))
