"""What git says when a fetch fails, as one of a few states, each with a sentence that says what to do."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from indexer.errors import DamagedClone, RemoteError
from indexer.git.git_errors import decode_output, is_damage
from indexer.git.git_errors import format_path as shown_path
from indexer.remotes.addresses import format_address, is_same_repository, redact_address
from indexer.remotes.remote_repository import RemoteRepository
from indexer.text.patterns import Pattern, compile_pattern
from indexer.types import RemoteState

_MOST_NAMED = 10  # branches that a sentence lists
_LONGEST_COMPLAINT = 20_000  # characters that are looked at: the last ones, where git says what ended it

# Words of git, of curl and of ssh, in the language that git is made to speak; the first that match count.
_WORDS: dict[RemoteState, re.Pattern[str] | Pattern] = {
    "disk full": re.compile(r"no space left|quota exceeded|file too large|disk full", re.IGNORECASE),
    "host not trusted": re.compile(r"host key verification|certificate|SSL: no alternative", re.IGNORECASE),
    "auth refused": re.compile(
        r"could not read (?:username|password)|authentication failed|returned error: 40[13]\b|permission denied"
        r"|access denied|not authorized|too many authentication failures",
        re.IGNORECASE,
    ),
    "not found": re.compile(
        r"repository '[^']*' (?:not found|does not exist)|repository not found|could not be found"
        r"|returned error: (?:404|410)\b|does not appear to be a git repository|is this a git repository\?",
        re.IGNORECASE,
    ),
    "branch gone": re.compile(r"couldn't find remote ref", re.IGNORECASE),
    "moved": compile_pattern(r"(?i)update url base from redirection|protocol .+ (?:disabled|not supported)"),
    "host down": re.compile(
        r"could(?: not|n't) (?:resolve|connect)|failed to connect|connection (?:refused|reset|timed|closed)"
        r"|operation (?:too slow|timed out)|timed out|empty reply|unexpected disconnect|early EOF|recv failure"
        r"|returned error: (?:429|5\d\d)\b|RPC failed|hung up unexpectedly|network is unreachable|no route to host"
        r"|temporary failure|transfer closed|HTTP/2 stream",
        re.IGNORECASE,
    ),
}
_REDIRECTED = re.compile(r"^warning: redirecting to (\S+)", re.MULTILINE)


def make_fetch_error(remote: RemoteRepository, complaint: str) -> RemoteError:
    """Say why git could not fetch."""
    _, token = remote.sign_in or ("", "")
    said = (redact_address(complaint, token) if token else redact_address(complaint))[-_LONGEST_COMPLAINT:]
    state = next((state for state, words in _WORDS.items() if words.search(said)), None)
    if state is None:
        return RemoteError("failed", f"{_place(remote)} could not be fetched: {_reason(said)}. It is tried again.")
    if state == "branch gone":
        return make_branch_gone_error(remote, remote.branch, ())
    return RemoteError(state, _SENTENCES[state].format(place=_place(remote), name=remote.name, reason=_reason(said)))


def make_clone_error(remote: RemoteRepository, complaint: str, folder: Path) -> RemoteError:
    """Say why the clone itself cannot be read or written."""
    error = make_fetch_error(remote, complaint)
    if error.state == "disk full":
        return error
    where = shown_path(folder)
    return DamagedClone(
        "failed",
        f"The clone of {remote.name} in {where} is damaged ({_reason(complaint)}). It is fetched again; if that does "
        "not help, delete the folder.",
    )


def is_local_damage(complaint: str) -> bool:
    """Whether a fetch failed because of what had been fetched before, and not because of the host."""
    local = [line for line in complaint.splitlines() if not line.startswith("remote:")]
    return not any(words.search(complaint) for words in _WORDS.values()) and is_damage("\n".join(local))


def make_timeout_error(remote: RemoteRepository, seconds: float) -> RemoteError:
    """Say that a host did not finish in time."""
    return RemoteError(
        "host down", f"{_place(remote)} did not answer within {seconds:g} seconds. It is tried again by itself."
    )


def too_long(remote: RemoteRepository) -> RemoteError:
    """Say that a host did not stop to name branches, or to complain."""
    return RemoteError(
        "failed", f"{_place(remote)} sent more than git has to say about a repository. Check that its url is right."
    )


def make_disk_full_error(folder: Path) -> RemoteError:
    """Say that there is no room for a clone."""
    where = shown_path(folder)
    return RemoteError("disk full", f"The disk that holds {where} is full. Free some room; it goes on then.")


def make_empty_error(remote: RemoteRepository) -> RemoteError:
    """Say that nothing was pushed yet."""
    return RemoteError("empty", f"{_place(remote)} has no commit yet. Push one; it is noticed by itself.")


def make_branch_gone_error(remote: RemoteRepository, branch: str | None, others: Sequence[str]) -> RemoteError:
    """Say that the branch that is followed was deleted or renamed, and which ones there are."""
    there = f" There are: {_format_names(others)}." if others else ""
    if branch is None:
        what = f"{_place(remote)} has no default branch that exists."
    else:
        what = (
            f"{_place(remote)} has no branch {_printable(branch)}: it was deleted or renamed, or is written otherwise."
        )
    return RemoteError("branch gone", f"{what}{there} Set branch to one that is there.")


def describe_forced_update(branch: str, old: str, new: str) -> str:
    """Say that history was rewritten."""
    return f"{_printable(branch)} was force-pushed: {old[:7]} is no longer part of it. It went on from {new[:7]}."


def describe_redirect(remote: RemoteRepository, complaint: str) -> str:
    """Say where a host redirects to; nothing if that is the same repository, or nowhere."""
    target = next((format_address(url) for url in _REDIRECTED.findall(complaint)), "")
    if not target or is_same_repository(target, remote.url):
        return ""
    return f"{_place(remote)} has moved to {target}. It is fetched from there; set url to the new address."


_SENTENCES: dict[RemoteState, str] = {
    "disk full": "There is no room on the disk for the clone of {name}. Free some; it goes on then.",
    "host not trusted": "{place} did not prove who it is ({reason}). Add its certificate, or its line in known_hosts.",
    "auth refused": "{place} refused the sign-in. Check that the token or key is valid and may read the repository.",
    "not found": "There is no repository at {place}, or the sign-in may not see it. Check url and the token.",
    "host down": "{place} cannot be reached ({reason}). It is tried again by itself.",
    "moved": "{place} redirects to where no repository can be fetched ({reason}). Set url to its new address.",
}


def _place(remote: RemoteRepository) -> str:
    return f"{remote.name} ({format_address(remote.url)})"


def _format_names(names: Iterable[str]) -> str:
    listed = [_printable(name) for name in names]
    rest = len(listed) - _MOST_NAMED
    return ", ".join(listed[:_MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _printable(name: str) -> str:
    """A branch as it can be shown and stored, whatever bytes its host gave it."""
    return "".join(char if char.isprintable() else "?" for char in decode_output(os.fsencode(name)))[:200]


def _reason(complaint: str) -> str:
    """The line that ended git, in bounds; what the host itself says is not repeated."""
    lines = [line for line in complaint.splitlines() if line.strip() and not line.startswith(("remote:", "warning:"))]
    grave = [line for line in lines if line.startswith(("fatal: ", "error: "))] or lines
    line = re.sub(r"^(?:fatal|error): ", "", grave[0]) if grave else "no reason given"
    return "".join(char for char in line if char.isprintable())[:200].rstrip(". ")
