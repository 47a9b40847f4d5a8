"""Contents as Slack's blocks, and what presses of their buttons mean: pure functions."""

from __future__ import annotations

from typing import Any, cast, get_args

from bot.adapters.slack.text import to_mrkdwn
from bot.messages import Button, ButtonAction, MessageContent

Block = dict[str, Any]
PREFIX = "citebot_"
RATE = f"{PREFIX}rate"  # the two feedback buttons are one element in Slack
_STYLES: dict[ButtonAction, str] = {"stop": "danger", "approve": "primary"}


def render_blocks(content: MessageContent) -> list[Block]:
    """Lay a content out: its text, its lines, its buttons."""
    text = [{"type": "markdown", "text": content.text}] if content.text.strip() else []
    return [*text, *render_context(content)]


def render_context(content: MessageContent) -> list[Block]:
    """Lay out what stands below the text."""
    lines = [_line(f"_{to_mrkdwn(content.status)}_")] if content.status else []
    lines += [_line(to_mrkdwn(content.footer))] if content.footer else []
    return [*lines, *_buttons(content.buttons)]


def parse_button(action_id: str, value: str) -> tuple[ButtonAction, str] | None:
    """Read what was pressed and the value that came with it; None for what is no button of a reply."""
    if action_id == RATE:
        opinion, _, value = value.partition(":")
        return (cast("ButtonAction", opinion), value) if opinion in {"good", "bad"} else None
    action = action_id.removeprefix(PREFIX).partition(".")[0]
    known = action_id.startswith(PREFIX) and action in get_args(ButtonAction)
    return (cast("ButtonAction", action), value) if known else None


def _line(words: str) -> Block:
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": words}]}


def _buttons(buttons: tuple[Button, ...]) -> list[Block]:
    rating = {button.action: button for button in buttons if button.action in {"good", "bad"}}
    others = [_button(button, number) for number, button in enumerate(buttons) if button.action not in rating]
    found: list[Block] = [{"type": "actions", "elements": others}] if others else []
    if len(rating) == 2:
        found.append({"type": "context_actions", "elements": [_rating(rating["good"], rating["bad"])]})
    return found


def _button(button: Button, number: int) -> Block:
    # Slack wants the ids of a block to differ, and there may be several buttons that choose.
    name = f"{PREFIX}{button.action}.{number}" if button.action == "choose" else f"{PREFIX}{button.action}"
    element = {"type": "button", "action_id": name, "text": _words(button.label)}
    element |= {"value": button.value} if button.value else {}
    style = _STYLES.get(button.action)
    return element | ({"style": style} if style else {})


def _rating(good: Button, bad: Button) -> Block:
    return {
        "type": "feedback_buttons",
        "action_id": RATE,
        "positive_button": _opinion(good),
        "negative_button": _opinion(bad),
    }


def _opinion(button: Button) -> Block:
    return {
        "text": _words(button.label),
        "value": f"{button.action}:{button.value}",
        "accessibility_label": button.label[:75],
    }


def _words(label: str) -> Block:
    return {"type": "plain_text", "text": label[:75]}
