"""Maps git's messages on failed fetches to a few states, each with a sentence that says what to do."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from indexer.errors import DamagedClone, RemoteError
from indexer.git.git_command import decode_output, format_path, is_damage
from indexer.remotes.addresses import format_address, is_same_repository, redact_address
from indexer.remotes.remote_repository import RemoteRepository
from indexer.text.linear_patterns import Pattern, compile_pattern
from indexer.types import RemoteState

_MAX_NAMED = 10  # branches that a sentence lists
_MAX_COMPLAINT = 20_000  # characters that are searched: the last ones, where git says what went wrong

# Words of git, curl and ssh, which are always in English here; the first that match count.
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
    """Make the error for a failed fetch."""
    _, token = remote.sign_in or ("", "")
    text = redact_address(complaint, *filter(None, [token]))[-_MAX_COMPLAINT:]
    state = next((state for state, words in _WORDS.items() if words.search(text)), None)
    if state is None:
        return RemoteError(
            "failed",
            f"{format_remote(remote)} could not be fetched: {_find_reason(text)}. It will be retried automatically.",
        )
    if state == "branch gone":
        return make_branch_gone_error(remote, remote.branch, ())
    return RemoteError(
        state, _SENTENCES[state].format(place=format_remote(remote), name=remote.name, reason=_find_reason(text))
    )


def make_clone_error(remote: RemoteRepository, complaint: str, folder: Path) -> RemoteError:
    """Make the error for an unreadable or unwritable clone."""
    error = make_fetch_error(remote, complaint)
    if error.state == "disk full":
        return error
    return DamagedClone(
        "failed",
        f"The clone of {remote.name} in {format_path(folder)} is damaged ({_find_reason(complaint)}). It will be "
        "fetched again; if that does not help, delete the folder.",
    )


def is_local_damage(complaint: str) -> bool:
    """Whether a fetch failed because the clone is damaged, and not because of the host."""
    local = [line for line in complaint.splitlines() if not line.startswith("remote:")]
    return not any(words.search(complaint) for words in _WORDS.values()) and is_damage("\n".join(local))


def make_branch_gone_error(remote: RemoteRepository, branch: str | None, others: Sequence[str]) -> RemoteError:
    """Make the error for a deleted or renamed followed branch, listing the existing ones."""
    names = ", ".join(map(format_branch, others[:_MAX_NAMED]))
    more = f" and {len(others) - _MAX_NAMED} more" if len(others) > _MAX_NAMED else ""
    existing = f" Existing branches: {names}{more}." if others else ""
    if branch is None:
        problem = "has no default branch that exists."
    else:
        problem = f"has no branch {format_branch(branch)}: it was deleted or renamed, or its name is misspelled."
    return RemoteError("branch gone", f"{format_remote(remote)} {problem}{existing} Set branch to one that exists.")


def describe_redirect(remote: RemoteRepository, complaint: str) -> str:
    """Describe a host's redirect; empty if there is none, or to the same repository."""
    target = next((format_address(url) for url in _REDIRECTED.findall(complaint)), "")
    if not target or is_same_repository(target, remote.url):
        return ""
    return f"{format_remote(remote)} has moved to {target}. It is fetched from there; set url to the new address."


_SENTENCES: dict[RemoteState, str] = {
    "disk full": "There is no space on the disk for the clone of {name}. Free some to continue.",
    "host not trusted": "{place} could not be verified ({reason}). Add its certificate, or its line in known_hosts.",
    "auth refused": "{place} refused the sign-in. Check that the token or key is valid and may read the repository.",
    "not found": "There is no repository at {place}, or the account may not see it. Check url and the token.",
    "host down": "{place} cannot be reached ({reason}). It will be retried automatically.",
    "moved": "{place} redirects to an address that cannot be fetched ({reason}). Set url to its new address.",
}


def format_remote(remote: RemoteRepository) -> str:
    """Describe a repository and its place."""
    return f"{remote.name} ({format_address(remote.url)})"


def format_branch(name: str) -> str:
    """Make a branch name safe to show and to store, whatever bytes it has."""
    return "".join(char if char.isprintable() else "?" for char in decode_output(os.fsencode(name)))[:200]


def _find_reason(complaint: str) -> str:
    """Find git's line with the reason, shortened; the host's own text is not repeated."""
    lines = [line for line in complaint.splitlines() if line.strip() and not line.startswith(("remote:", "warning:"))]
    errors = [line for line in lines if line.startswith(("fatal: ", "error: "))] or lines
    line = re.sub(r"^(?:fatal|error): ", "", errors[0]) if errors else "no reason given"
    return "".join(char for char in line if char.isprintable())[:200].rstrip(". ")
