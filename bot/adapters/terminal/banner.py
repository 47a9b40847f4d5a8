"""Writes the banner of a terminal conversation: its repository, the model that writes, and example questions."""

from __future__ import annotations

from collections.abc import Sequence

from bot.markdown import to_one_line
from indexer import IndexStatus

NO_MODEL = "No language model: answers quote the code."
KEYS = "/help lists commands, Tab completes them, files and names, Alt-Enter starts a new line."


OFFER = "Ollama runs on this machine: use it with CITEBOT_MODEL=ollama:{name}."


def format_banner(
    version: str, status: IndexStatus, writer: str, questions: Sequence[str], local: Sequence[str] = ()
) -> str:
    """Write the first lines; `writer` is the model that writes the answers, empty if none does.

    `local` are models on this machine that could.
    """
    branch = f" on {to_one_line(status.branch)}" if status.branch else ""
    size = f"{status.files:,} file{'s' * (status.files != 1)}"
    lines = [
        f"citebot {version}: {to_one_line(status.repository)} at {(status.commit or '')[:7]}{branch}, {size}.",
        f"{to_one_line(writer)} writes the answers." if writer else NO_MODEL,
        *(OFFER.format(name=to_one_line(name)) for name in local[:1] if not writer),
        *(["Ask, for example:"] if questions else []),
        *(f"  {to_one_line(question)}" for question in questions),
        KEYS,
    ]
    return "\n".join(lines)
