"""The last turns of a conversation as a model is told of them: without marks, with the places they were read from."""

from __future__ import annotations

from collections.abc import Sequence

from agent.state import CitationRef, PastTurn
from agent.text.citation_markers import find_markers, replace_markers
from agent.text.escaping import to_one_line

MAX_TURNS = 3
MAX_PLACES = 12
_LONGEST_ANSWER = 1500
_LONGEST_NEWEST = 4000  # the one that a question most likely leans on


def format_past_turns(history: Sequence[PastTurn]) -> str:
    """Write down the last turns; their marks would be taken for ones of this turn."""
    newest = history[-MAX_TURNS:]
    rooms = [*[_LONGEST_ANSWER] * (len(newest) - 1), _LONGEST_NEWEST]
    return "\n\n".join(_format_turn(turn, room) for turn, room in zip(newest, rooms[-len(newest) :], strict=True))


def _format_turn(turn: PastTurn, room: int) -> str:
    answer = replace_markers(turn["answer"], [""] * len(find_markers(turn["answer"])))[:room]
    places = ", ".join(map(_format_citation, turn["citations"][:MAX_PLACES]))
    return f"Question: {turn['question']}\nAnswer: {answer}" + (f"\nRead from: {places}" if places else "")


def _format_citation(citation: CitationRef) -> str:
    if not citation["path"]:
        return f"commit {citation.get('commit', '')[:12]}"
    return f"{to_one_line(citation['path'], longest=200)}:L{citation['start_line']}-L{citation['end_line']}"
