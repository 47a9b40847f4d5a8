"""Limits the length of outside text, before anything else reads it."""

from __future__ import annotations

from agent.questions.pasted_errors import cut_log

MAX_QUESTION = 4_000
MAX_RAW_TEXT = 200_000  # longer text is not even shortened
QUESTION_TOO_LONG = (
    f"That message is too long. Ask in at most {MAX_QUESTION:,} characters; of a file, paste the part that matters."
)


def fit_text(text: str, most: int = MAX_QUESTION) -> str | None:
    """Return a text that is short enough, None for one that is too long.

    Excess white space, as in a pasted log with columns, is reduced; a longer log is cut to its last
    failure.
    """
    if len(text) <= most:
        return text
    squeezed = squeeze(text) if len(text) <= MAX_RAW_TEXT else None
    return squeezed if squeezed is None or len(squeezed) <= most else cut_log(squeezed, most)


def squeeze(text: str) -> str:
    """Remove blank lines and repeated spaces, also at the beginning of a line."""
    lines = (" " * line[:1].isspace() + " ".join(line.split()) for line in text.splitlines())
    return "\n".join(line for line in lines if not line.isspace() and line)


def clip(text: str) -> str:
    """Cut an overlong text to a storable beginning that is still too long to be answered."""
    return squeeze(text[:MAX_RAW_TEXT])[:MAX_QUESTION].ljust(MAX_QUESTION, "…") + "…"
