"""The payloads of interactions: a pressed button, a slash command, a message shortcut."""

from __future__ import annotations

from tests.fakes.loopback.wire import JSON
from tests.fakes.slack.blocks import pressables
from tests.fakes.slack.messages import Message
from tests.fakes.slack.workspace import APP_ID, TEAM, Channel, Person


def pressed(blocks: list[JSON], action_id: str, value: str | None, at: str) -> JSON:
    """The action of a press; `LookupError` if there is nothing like it to press."""
    offered = {element["action_id"]: (block, element) for block, element in pressables(blocks)}
    if action_id not in offered:
        raise LookupError(f"no {action_id!r} to press, only {sorted(offered)}")
    block, element = offered[action_id]
    action = {"type": element["type"], "action_id": action_id, "block_id": block.get("block_id", ""), "action_ts": at}
    match element["type"]:
        case "button":
            action |= {"text": element["text"]} | ({"value": element["value"]} if "value" in element else {})
        case "icon_button":
            action |= {"value": element["value"]} if "value" in element else {}
        case "feedback_buttons":
            values = [element[name]["value"] for name in ("positive_button", "negative_button")]
            action |= {"value": _one_of(values, value)}
        case _:
            options = {option["value"]: option for option in element.get("options", [])}
            action |= {"selected_option": options[_one_of(list(options), value)]}
    return action


def _one_of(values: list[str], value: str | None) -> str:
    if value not in values:
        raise LookupError(f"no {value!r} to choose, only {values}")
    return value


def interaction(kind: str, user: Person, *, trigger: str) -> JSON:
    """What all interactions have in common."""
    who = {"id": user.id, "username": user.name, "name": user.name, "team_id": user.team}
    team = {"id": TEAM, "domain": "home"}
    common = {"type": kind, "user": who, "team": team, "api_app_id": APP_ID, "token": "legacy-token"}
    return common | {"trigger_id": trigger, "enterprise": None, "is_enterprise_install": False}


def of_message(message: Message, channel: Channel, wire: JSON) -> JSON:
    """Where a press in a message happened; an ephemeral one is not shown to the app."""
    container: JSON = {"type": "message", "message_ts": message.ts, "channel_id": channel.id}
    container |= {"is_ephemeral": message.for_user is not None}
    if message.thread_ts:
        container |= {"thread_ts": message.thread_ts}
    body: JSON = {"container": container, "channel": {"id": channel.id, "name": channel.name}}
    return body if message.for_user else body | {"message": wire, "state": {"values": {}}}


def slash_command(command: str, text: str, user: Person, channel: Channel, *, trigger: str, answer_to: str) -> JSON:
    """The form of a slash command."""
    return {
        "token": "legacy-token",
        "team_id": TEAM,
        "team_domain": "home",
        "channel_id": channel.id,
        "channel_name": "directmessage" if channel.kind == "im" else channel.name,
        "user_id": user.id,
        "user_name": user.name,
        "command": command,
        "text": text,
        "api_app_id": APP_ID,
        "is_enterprise_install": "false",
        "response_url": answer_to,
        "trigger_id": trigger,
    }
