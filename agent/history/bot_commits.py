"""Tells the dependency updates of bots from the commits of people, and sums them up in a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agent.state import EvidenceRef
from agent.text.escaping import format_code_span, to_one_line
from indexer.text.linear_patterns import compile_pattern

_LEAST = 2  # that are summed up; a single one is a line like others
_BOT = compile_pattern(
    r"(?i)(?P<name>dependabot(?:-preview)?|renovate(?:-bot)?|greenkeeper\w*|snyk-bot|pyup-bot|depfu|scala-steward)\b.*"
)
_UPDATE = compile_pattern(
    r"(?i)(?:\w{1,20}(?:\([^()]{1,40}\))?!?: ?)?(?:bump|update|upgrade|pin|lock file maintenance|\[security\])\b.*"
)


def divide_commits(commits: Sequence[EvidenceRef]) -> tuple[list[EvidenceRef], list[EvidenceRef]]:
    """Return the commits that are worth a line each, and the dependency updates of bots; a single one is no group."""
    updates = [ref for ref in commits if read_bot(ref) and _UPDATE.match(ref["symbol"])]
    if len(updates) < _LEAST:
        return list(commits), []
    marks = set(map(id, updates))
    return [ref for ref in commits if id(ref) not in marks], updates


def read_bot(ref: EvidenceRef) -> str:
    """Return the name of the bot that made a commit, empty for a person."""
    found = _BOT.fullmatch(ref["signature"].partition(", ")[2].strip())
    return to_one_line(found["name"], longest=40).lower() if found is not None else ""


def describe_updates(updates: Sequence[EvidenceRef]) -> str:
    """Write how many dependency updates there are, and by which bots."""
    names = Counter(map(read_bot, updates))
    by = " and ".join(format_code_span(name) for name, _ in names.most_common(2))
    return f"And {len(updates):,} dependency updates by {by}."
