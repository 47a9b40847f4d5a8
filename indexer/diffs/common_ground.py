"""Finds the common ancestor of two commits, and counts the commits that each has and the other lacks."""

from __future__ import annotations

from dataclasses import dataclass

from indexer.git.git_command import GitCommand

_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class CommonGround:
    """`base` is empty if the two have no commit in common, or none that is known here; counts are None then."""

    base: str
    ahead: int | None = None
    behind: int | None = None


def find_common_ground(git: GitCommand, older: str, newer: str) -> CommonGround:
    """Find where two commits, given by their ids, have parted."""
    output = git.try_run("merge-base", older, newer, seconds=_SECONDS)
    base = (output or b"").split(b"\n")[0].decode("ascii", "replace").strip()
    counted = git.try_run("rev-list", "--left-right", "--count", f"{older}...{newer}", "--", seconds=_SECONDS)
    numbers = (counted or b"").split()
    if not base or len(numbers) != 2:
        return CommonGround(base=base)
    return CommonGround(base=base, ahead=int(numbers[1]), behind=int(numbers[0]))
