"""What comes of routing: the repositories that a question is about and why, or that this has to be asked."""

from __future__ import annotations

from dataclasses import dataclass

MOST_TOGETHER = 5  # repositories that one question is answered about, and that are offered as buttons


@dataclass(frozen=True, kw_only=True, slots=True)
class RepositoryChoice:
    """The repositories that a question is about, in the order of their sections.

    `why` tells how they were found, `remark` is a line that the answer has to begin with, or empty. `question` is what
    was asked without the words that only say of which repository. `decides` says that the conversation is about the
    repository from now on, if it is about none yet.
    """

    repositories: tuple[str, ...]
    why: str
    question: str
    remark: str = ""
    decides: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class AmbiguousRepository:
    """Nothing tells which repository is meant: the likeliest, best first, of so many that there are."""

    likeliest: tuple[str, ...]
    of: int


def label_section(conversation: str, repository: str) -> str:
    """Name what is said of one repository where a question was about several."""
    return f"{conversation}:across:{repository}"
