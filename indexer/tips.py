"""The commit to index, as a host or a local repository shows it, and what there is to say about how it got there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# What can be told of a repository that is looked at; the first three go on, the others leave everything as it was.
RemoteState = Literal[
    "ready",
    "force-pushed",
    "moved",
    "empty",
    "branch gone",
    "not found",
    "host down",
    "host not trusted",
    "auth refused",
    "disk full",
    "failed",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class BranchHead:
    """The newest commit of the branch that is followed; it can be read here.

    `remark` is a sentence for people, empty in the state `ready`.
    """

    commit: str
    branch: str | None
    state: RemoteState = "ready"
    remark: str = ""
