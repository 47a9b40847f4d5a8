"""Turns contents into Slack's blocks, and Slack's text into plain Markdown. Pure functions."""

from __future__ import annotations

import re
from typing import Any, cast, get_args

from agent import MAX_QUESTION, fit_text
from bot.messages import Button, ButtonAction, MessageContent, PlaceLink

Block = dict[str, Any]
PREFIX = "citebot_"
SOMEBODY, CHANNEL = "someone", "channel"  # where Slack gives an id alone, which nobody has asked about
RATE = f"{PREFIX}rate"  # the two feedback buttons are one element in Slack
_STYLES: dict[ButtonAction, str] = {"stop": "danger", "approve": "primary"}

_TOKEN = re.compile(r"<(?P<sign>[@#!]?)(?P<target>[^<>|\n]*)(?:\|(?P<label>[^<>\n]*))?>")
_LINK = re.compile(r"\[(?P<label>[^\[\]\n]+)\]\((?P<target>https?://[^()\s]+)\)")
_ENTITY_BEGINNING = re.compile(r"&[a-z]{0,3}$")
_LINKED_MARK = re.compile(r"\[(?P<label>\[\d{1,4}\])\]\(https?://[^()\s]+\)")
LONGEST = 4 * MAX_QUESTION  # characters as Slack sends them, which writes `&` as five and a name as fourteen
_FALLBACK = 3_900  # `chat.update` refuses a text of more than 4,000 characters, counted once it is escaped


def render_blocks(content: MessageContent) -> list[Block]:
    """Lay a content out as blocks: its text, its lines, its buttons."""
    text = [{"type": "markdown", "text": content.text}] if content.text.strip() else []
    return [*text, *render_context(content)]


def render_context(content: MessageContent) -> list[Block]:
    """Lay out the lines below the text."""
    lines = [_make_context_block(f"_{to_mrkdwn(content.status)}_")] if content.status else []
    lines += [_make_context_block(f"Found {', '.join(map(_format_place, content.found))}")] if content.found else []
    lines += [_make_context_block(to_mrkdwn(content.footer))] if content.footer else []
    return [*lines, *_make_button_blocks(content.buttons)]


def parse_button(action_id: str, value: str) -> tuple[ButtonAction, str] | None:
    """Parse a press and its value; None unless it is a button of a reply."""
    if action_id == RATE:
        opinion, _, value = value.partition(":")
        return (cast("ButtonAction", opinion), value) if opinion in {"good", "bad"} else None
    action = action_id.removeprefix(PREFIX).partition(".")[0]
    known = action_id.startswith(PREFIX) and action in get_args(ButtonAction)
    return (cast("ButtonAction", action), value) if known else None


def _format_place(place: PlaceLink) -> str:
    name = escape_mrkdwn(place.name)
    return f"<{escape_mrkdwn(place.url)}|{name}>" if place.url else f"`{name}`"


def _make_context_block(text: str) -> Block:
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": text}]}


def _make_button_blocks(buttons: tuple[Button, ...]) -> list[Block]:
    rating = {button.action: button for button in buttons if button.action in {"good", "bad"}}
    others = [_make_button(button, number) for number, button in enumerate(buttons) if button.action not in rating]
    blocks: list[Block] = [{"type": "actions", "elements": others}] if others else []
    if len(rating) == 2:
        feedback = {
            "type": "feedback_buttons",
            "action_id": RATE,
            "positive_button": _make_rating_button(rating["good"]),
            "negative_button": _make_rating_button(rating["bad"]),
        }
        blocks.append({"type": "context_actions", "elements": [feedback]})
    return blocks


def _make_button(button: Button, number: int) -> Block:
    # Slack wants the ids of a block to differ, and there may be several buttons that choose or ask.
    name = f"{PREFIX}{button.action}.{number}" if button.action in {"choose", "ask"} else f"{PREFIX}{button.action}"
    element = {"type": "button", "action_id": name, "text": _make_plain_text(button.label)}
    element |= {"value": button.value} if button.value else {}
    style = _STYLES.get(button.action)
    return element | ({"style": style} if style else {})


def _make_rating_button(button: Button) -> Block:
    return {
        "text": _make_plain_text(button.label),
        "value": f"{button.action}:{button.value}",
        "accessibility_label": button.label[:75],
    }


def _make_plain_text(label: str) -> Block:
    return {"type": "plain_text", "text": label[:75]}


def read_text(text: str, *, own: str) -> tuple[str, int]:
    """Return the plain text of a message, and 0; for an overlong one, no text and its length."""
    fitting = fit_text(text, LONGEST)
    return ("", len(text)) if fitting is None else (to_plain_markdown(fitting, own=own), 0)


def to_plain_markdown(text: str, *, own: str) -> str:
    """Return the words as typed, without mentions of the app's own user.

    Slack escapes `& < >`, and writes links, people and channels as `<...>`, `setup.py` as
    `<http://setup.py|setup.py>`.
    """
    read = _TOKEN.sub(
        lambda found: "" if (found["sign"], found["target"]) == ("@", own) else _replace_token(found), text
    )
    return unescape_slack(read).strip()


def has_mention(text: str, user: str) -> bool:
    """Whether a text mentions somebody."""
    return re.search(rf"<@{re.escape(user)}[|>]", text) is not None


def has_other_mentions(text: str, own: str) -> bool:
    """Whether a text is addressed to somebody else: a person, a group, everybody."""
    return any(
        (found["sign"] == "@" and found["target"] != own)
        or (found["sign"] == "!" and found["target"].startswith(("here", "channel", "everyone", "subteam^")))
        for found in _TOKEN.finditer(text)
    )


def unescape_slack(text: str) -> str:
    """Undo the escaping of the three characters that Slack escapes."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def escape_mrkdwn(text: str) -> str:
    """Escape text for Slack, so that nothing in it links or notifies."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def to_mrkdwn(markdown: str) -> str:
    """Write one line of safe Markdown for a context block; links become Slack's own."""
    return _LINK.sub(lambda found: f"<{found['target']}|{found['label']}>", escape_mrkdwn(markdown))


def make_fallback_text(markdown: str) -> str:
    """Make the text of a message for notifications and screen readers, which do not read the blocks."""
    bare = _LINKED_MARK.sub(lambda found: found["label"], markdown)
    text = _LINK.sub(lambda found: found["label"], bare).strip()
    escaped = escape_mrkdwn(text[: _FALLBACK + 1])
    if len(escaped) <= _FALLBACK:
        return escaped or "…"
    return f"{_ENTITY_BEGINNING.sub('', escaped[:_FALLBACK])}…"


def _replace_token(found: re.Match[str]) -> str:
    sign, target, label = found["sign"], found["target"], found["label"]
    if sign == "@":
        return f"@{label or SOMEBODY}"
    if sign == "#":
        return f"#{label or CHANNEL}"
    if sign == "!":
        return label or f"@{target.partition('^')[0]}"
    return _format_link(unescape_slack(target), unescape_slack(label or ""))


def _format_link(target: str, label: str) -> str:
    """Undo the links that Slack makes of file names; keep both parts of a link that a person made."""
    bare = re.sub(r"^(?:https?://|mailto:|tel:)", "", target)
    if not label:
        return escape_mrkdwn(target)
    return escape_mrkdwn(label) if label in {target, bare} else escape_mrkdwn(f"[{label}]({target})")
