"""The choice of repositories for a question, and the question back to a person where it is ambiguous."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from bot.messages import Button, IncomingMessage, MessageContent

MOST_TOGETHER = 5  # repositories that one question is answered about, and that are offered as buttons

LONGEST_LABEL = 75


class RoutedQuestion(Protocol):
    """A question as routing sees it: the message, what it continues with, and the run that answers it."""

    @property
    def message(self) -> IncomingMessage:
        """The question, with its author and place."""

    @property
    def conversation(self) -> str:
        """The id of the conversation in the agent's memory."""

    @property
    def run_id(self) -> str:
        """The run that answers it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RepositoryChoice:
    """The repositories that a question is about, the most likely first or as the question names them.

    `why` tells how they were found, `remark` is a line that the answer has to begin with, or empty. `question` is what
    was asked without the words that only say of which repository. `decides` says that the conversation is about them
    from now on, if it is about none yet.
    """

    repositories: tuple[str, ...]
    why: str
    question: str
    remark: str = ""
    decides: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class AmbiguousRepository:
    """It is unclear which repository is meant: the likeliest, best first, and how many there are in all."""

    likeliest: tuple[str, ...]
    of: int


def make_clarifying_question(unclear: AmbiguousRepository, run_id: str) -> MessageContent:
    """Ask back. A button stands for the place of a repository among those offered: its value must be short."""
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
