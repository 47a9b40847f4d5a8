"""Members of a Grid's other workspaces count as colleagues."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bot.adapters.slack.client import BotIdentity
from bot.adapters.slack.parsing import ButtonPressed, MessageReceived, parse_delivery
from bot.adapters.slack.rendering import RATE

IN_GRID = BotIdentity(team="T1", enterprise="E1", user="UBOT", bot="BBOT")
ALONE = BotIdentity(team="T1", user="UBOT", bot="BBOT")
MENTION = {"type": "app_mention", "channel": "C1", "user": "U2", "ts": "1.000000", "text": "<@UBOT> where is send?"}
DIRECT = {**MENTION, "type": "message", "channel_type": "im"}
COMMAND = {"command": "/citebot", "user_id": "U2", "channel_id": "C1", "text": "status", "trigger_id": "1.2"}


def is_external(body: Mapping[str, object], own: BotIdentity) -> bool:
    (found,) = parse_delivery(body, own)
    assert isinstance(found, MessageReceived)
    return found.message.external


@pytest.mark.parametrize(
    ("event", "team", "shared", "own", "external"),
    [
        (MENTION, "T1", False, IN_GRID, False),
        (DIRECT, "T2", False, IN_GRID, False),
        (MENTION, "E1", False, IN_GRID, False),
        (DIRECT, "T2", None, IN_GRID, True),
        (MENTION, "T2", True, IN_GRID, True),
        (MENTION, "T1", True, IN_GRID, True),
        (DIRECT, "T2", False, ALONE, True),
    ],
)
def test_a_message_from_a_sibling_workspace_is_from_inside(
    event: Mapping[str, str], team: str, shared: bool | None, own: BotIdentity, external: bool
) -> None:
    told = {} if shared is None else {"is_ext_shared_channel": shared}

    assert is_external({"event": {**event, "user_team": team}, **told}, own) is external


@pytest.mark.parametrize(
    ("enterprise", "own", "external"), [("E1", IN_GRID, False), ("E2", IN_GRID, True), ("E1", ALONE, True)]
)
def test_a_command_from_a_sibling_workspace_is_from_inside(enterprise: str, own: BotIdentity, external: bool) -> None:
    assert is_external({**COMMAND, "team_id": "T2", "enterprise_id": enterprise}, own) is external


@pytest.mark.parametrize(("own", "external"), [(IN_GRID, False), (ALONE, True)])
def test_a_press_from_a_sibling_workspace_is_judged_by_its_channel(own: BotIdentity, external: bool) -> None:
    body = {
        "type": "block_actions",
        "user": {"id": "U2", "team_id": "T2"},
        "container": {"type": "message", "channel_id": "C1", "message_ts": "1.000000"},
        "actions": [{"action_id": RATE, "value": "good:0123"}],
    }

    (found,) = parse_delivery(body, own)

    assert isinstance(found, ButtonPressed)
    assert found.press.external is external
