"""Parts a message that asks several things into its questions."""

from __future__ import annotations

from indexer.text.linear_patterns import compile_pattern

_MOST = 3
_LONGEST = 600
_LEAST_WORDS = 3
_END = compile_pattern(r"\?\s+(?:(?:and|also|und|et|y)\s+)?")
_ASKS = compile_pattern(
    r"(?i)(?:who|what|which|where|when|why|how|does|do|is|are|can|list|show|wer|was|welche[rsn]?|wo|wann|warum|wie|qui"
    r"|que|quel(?:le)?s?|où|comment|pourquoi|quién|qué|dónde|cómo|cuál(?:es)?)\b.*"
)


def split_questions(message: str) -> list[str]:
    """Return the questions of a message, at most three; the message itself where it asks one thing."""
    line = " ".join(message[:_LONGEST].split())
    if len(message) > _LONGEST or "`" in line or "\n" in message.strip():
        return [message]
    parts = [part.strip(" ?") for part in _END.split(line) if part.strip(" ?")]
    asks = [len(part.split()) >= _LEAST_WORDS and _ASKS.fullmatch(part) is not None for part in parts]
    return [f"{part}?" for part in parts] if 1 < len(parts) <= _MOST and all(asks) else [message]
