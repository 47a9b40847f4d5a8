"""Reads what people wrote in Slack as plain Markdown, and writes the little mrkdwn that blocks need: pure functions."""

from __future__ import annotations

import re

from agent.guard.size import MAX_QUESTION, fit

_TOKEN = re.compile(r"<(?P<sign>[@#!]?)(?P<target>[^<>|\n]*)(?:\|(?P<label>[^<>\n]*))?>")
_LINK = re.compile(r"\[(?P<label>[^\[\]\n]+)\]\((?P<target>https?://[^()\s]+)\)")
LONGEST = 4 * MAX_QUESTION  # characters as Slack sends them, which writes `&` as five and a name as fourteen
_FALLBACK = 2_900  # `chat.update` refuses a text of more than 4,000 characters


def read_text(text: str, *, own: str) -> tuple[str, int]:
    """Return the words of a message, and 0; of one that is too long to be read no word, and its length."""
    fitting = fit(text, LONGEST)
    return ("", len(text)) if fitting is None else (to_plain_markdown(fitting, own=own), 0)


def to_plain_markdown(text: str, *, own: str) -> str:
    """Return the words as they were typed, without mentions of the app's own user.

    Slack escapes `& < >`, and writes links, people and channels as `<...>`, `setup.py` as `<http://setup.py|setup.py>`.
    """
    read = _TOKEN.sub(lambda found: "" if (found["sign"], found["target"]) == ("@", own) else _read(found), text)
    return unescape_slack(read).strip()


def has_mention(text: str, user: str) -> bool:
    """Whether a text mentions somebody."""
    return re.search(rf"<@{re.escape(user)}[|>]", text) is not None


def has_other_mentions(text: str, own: str) -> bool:
    """Whether a text is addressed to somebody else: a person, a group, everybody."""
    return any(_is_other_mention(found, own) for found in _TOKEN.finditer(text))


def unescape_slack(text: str) -> str:
    """Undo the escaping of the three characters that Slack escapes."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def escape_mrkdwn(text: str) -> str:
    """Escape text for Slack, so that nothing in it is a link or rings at anybody."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def to_mrkdwn(markdown: str) -> str:
    """Write one line of safe Markdown for a context block; links become Slack's own."""
    return _LINK.sub(lambda found: f"<{found['target']}|{found['label']}>", escape_mrkdwn(markdown))


def make_fallback_text(markdown: str) -> str:
    """The text of a message for notifications and screen readers, where the blocks are what is shown."""
    text = _LINK.sub(lambda found: found["label"], markdown).strip()
    return escape_mrkdwn(text if len(text) <= _FALLBACK else f"{text[:_FALLBACK]}…") or "…"


def _read(found: re.Match[str]) -> str:
    sign, target, label = found["sign"], found["target"], found["label"]
    if sign == "@":
        return f"@{label or target}"
    if sign == "#":
        return f"#{label or target}"
    if sign == "!":
        return label or f"@{target.partition('^')[0]}"
    return _address(unescape_slack(target), unescape_slack(label or ""))


def _address(target: str, label: str) -> str:
    """An address that Slack made of a file name is the name again; a link that a person made keeps both."""
    bare = re.sub(r"^(?:https?://|mailto:|tel:)", "", target)
    if not label:
        return escape_mrkdwn(target)
    return escape_mrkdwn(label) if label in {target, bare} else escape_mrkdwn(f"[{label}]({target})")


def _is_other_mention(found: re.Match[str], own: str) -> bool:
    sign, target = found["sign"], found["target"]
    return (sign == "@" and target != own) or (
        sign == "!" and target.startswith(("here", "channel", "everyone", "subteam^"))
    )
