"""The question which repository is meant, with a button for each of the likeliest: a pure function."""

from __future__ import annotations

from bot.messages import Button, MessageContent
from bot.routing.routes import AmbiguousRepository

LONGEST_LABEL = 75


def make_clarifying_question(unclear: AmbiguousRepository, run_id: str) -> MessageContent:
    """Ask back. A button stands for the place of a repository among those offered: its value has to be short."""
    buttons = tuple(
        Button(action="choose", label=name[:LONGEST_LABEL], value=f"{run_id}.{number}")
        for number, name in enumerate(unclear.likeliest)
    )
    more = "" if unclear.of == len(buttons) else f" `repos` lists all {unclear.of}."
    return MessageContent(
        text=f"Which repository do you mean? Press its button, or say `use NAME`.{more}", buttons=buttons
    )


def parse_choice_button(value: str) -> str:
    """Return which of the repositories a pressed button stands for."""
    return value.rpartition(".")[2]
