"""Access: what is not allowed is refused, with a sentence; how much is asked is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.access import AccessPolicy
from bot.errors import NotAllowed, SettingsError
from bot.messages import IncomingMessage
from bot.settings import Settings
from bot.storage.database import open_database
from bot.storage.rate_limits import QuestionCounter, QuestionLimits
from tests.bot.chat import PLACE, message
from tests.fakes.clock import FakeClock

RULED = AccessPolicy.model_validate(
    {
        "reindex": ["ann", "role:maintainers"],
        "external_channels": ["fake:X"],
        "rules": [
            {"repositories": ["secret-*"], "channels": ["S", "direct"], "people": ["ann", "role:security"]},
            {"repositories": ["shop"], "channels": ["C"]},
        ],
    }
)


def in_channel(channel: str, **changes: Any) -> IncomingMessage:
    place = type(PLACE)(platform="fake", workspace="W", channel=channel, thread="1")
    return message(place=place, **changes)


@pytest.mark.parametrize(
    ("asked", "repository", "allowed"),
    [
        (in_channel("S"), "secret-plans", True),
        (in_channel("C"), "secret-plans", False),
        (in_channel("S", author="bob"), "secret-plans", False),
        (in_channel("S", author="bob", roles=("security",)), "secret-plans", True),
        (in_channel("D1", private=True, kind="direct"), "secret-plans", True),
        (in_channel("C"), "shop", True),
        (in_channel("S"), "shop", False),
        (in_channel("C", author="bob"), "anything-else", True),
    ],
)
def test_rules_decide_about_the_repositories_that_they_name(
    asked: IncomingMessage, repository: str, allowed: bool
) -> None:
    assert (RULED.list_visible(asked, [repository]) == (repository,)) == allowed
    if allowed:
        RULED.check_repository(asked, repository)
    else:
        with pytest.raises(NotAllowed, match="You don't have access to"):
            RULED.check_repository(asked, repository)


def test_a_closed_policy_allows_only_what_a_rule_allows() -> None:
    closed = AccessPolicy.model_validate({"open": False, "rules": [{"repositories": ["shop"]}]})

    assert closed.list_visible(message(), ["shop", "other"]) == ("shop",)


def test_channels_with_people_from_outside_are_refused_unless_listed() -> None:
    with pytest.raises(NotAllowed, match="outside your organization"):
        RULED.check_place(in_channel("C", external=True))
    RULED.check_place(in_channel("X", external=True))


@pytest.mark.parametrize("stranger", [in_channel("C", external=True), message(author="")])
def test_who_may_not_ask_at_all_sees_no_repositories(stranger: IncomingMessage) -> None:
    assert RULED.list_visible(stranger, ["shop", "anything-else"]) == ()


def test_who_cannot_be_told_is_refused() -> None:
    with pytest.raises(NotAllowed, match="can't tell who is asking"):
        AccessPolicy().check_place(message(author=""))


LISTED = [({"author": "ann"}, True), ({"author": "bob"}, False), ({"author": "bob", "roles": ("maintainers",)}, True)]


@pytest.mark.parametrize(("who", "allowed"), LISTED)
def test_reindexing_is_for_those_who_are_listed(who: dict[str, Any], allowed: bool) -> None:
    if allowed:
        RULED.check_reindex(message(**who), "shop")
    else:
        with pytest.raises(NotAllowed, match="Have your id added"):
            RULED.check_reindex(message(**who), "shop")


def test_nobody_reindexes_where_nobody_is_listed() -> None:
    with pytest.raises(NotAllowed):
        AccessPolicy().check_reindex(message(), "shop")


RULE = '[[access.rules]]\nrepositories = ["a"]\n'


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('access = "all"', "access: This is a table, written [access]."),
        ('[access]\nopen = "yes"', "access open: Write true or false."),
        ("[access]\nopen = 1", "access open: Write true or false."),
        ('[access]\nreindex = "ann"', "access reindex: This is a list of texts"),
        ('[access]\nexternal_channels = [""]', "access external_channels 1: "),
        ("[access]\nreindx = []", "access reindx: There is no such key; the table has open, reindex"),
        ("[access.rules]", "access rules: These are tables, written [[access.rules]]."),
        ("[access]\nrules = [1]", "access rules 1: These are tables, written [[access.rules]]."),
        ("[[access.rules]]", "access rules 1 repositories: Field required."),
        ("[[access.rules]]\nrepositories = []", "access rules 1 repositories: This is empty."),
        ('[[access.rules]]\nrepositories = "a"', "access rules 1 repositories: This is a list of texts"),
        (f"{RULE}people = [1]", "access rules 1 people 1: "),
        (
            f"{RULE}users = []",
            "access rules 1 users: There is no such key; the table has repositories, channels, people.",
        ),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_as_a_whole(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "citebot.toml").write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError) as refusal:
        Settings.load({"CITEBOT_CONFIG": "citebot.toml"}, tmp_path)

    assert f"citebot.toml: {complaint}" in str(refusal.value)


def test_everything_that_is_wrong_with_access_is_said_at_once(tmp_path: Path) -> None:
    text = f'[access]\nopen = "yes"\nreindx = []\n{RULE}users = []\n{RULE}people = "ann"\n'
    (tmp_path / "citebot.toml").write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError) as refusal:
        Settings.load({"CITEBOT_CONFIG": "citebot.toml"}, tmp_path)

    said = str(refusal.value)
    assert said.startswith("4 settings are wrong:")
    wrong = ("open", "reindx", "rules 1 users", "rules 2 people")
    assert [place for place in wrong if f"access {place}: " not in said] == []


async def test_a_person_may_ask_so_often_in_a_minute_and_in_a_day(tmp_path: Path) -> None:
    clock = FakeClock(now=86_400.0 * 3)
    async with open_database(tmp_path / "i.sqlite") as database:
        usage = QuestionCounter(database, clock, QuestionLimits(per_minute=2, per_day=3))
        for _ in range(2):
            await usage.count(message())
        with pytest.raises(NotAllowed, match="2 questions this minute. Ask again in 60 seconds"):  # noqa: RUF043
            await usage.count(message())
        await usage.count(message(author="bob"))

        await clock.advance(60)
        await usage.count(message())
        with pytest.raises(NotAllowed, match="3 questions this day. Ask again in 24 hours"):  # noqa: RUF043
            await usage.count(message())

        await clock.advance(86_400)
        await usage.count(message())


async def test_a_restart_forgives_nothing(tmp_path: Path) -> None:
    for expected in (True, False):
        async with open_database(tmp_path / "i.sqlite") as database:
            usage = QuestionCounter(database, FakeClock(), QuestionLimits(per_minute=1))
            if expected:
                await usage.count(message())
            else:
                with pytest.raises(NotAllowed):
                    await usage.count(message())
