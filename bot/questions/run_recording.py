"""Records the inputs of an answer from the events of its run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bot.storage.answer_records import AnswerRecord, EvidencePlace, Use

if TYPE_CHECKING:
    from agent import AgentEvent, Answer, Attachments, PastTurn

TAKEN_UP = "it continued after a reply or an interruption, so its first steps are not recorded"
ATTACHED = "its attachments are not kept"
ASKED_THE_WEB = "it searched the web, whose results are not recorded"
_FIRST_NODE = "security_gateway"
_WEB_TOOL = "web_search"

Place = tuple[str, int, int, str]  # path, first line, last line, commit


class RunRecording:
    """The reads of one run, and the replies of models; `question` is the agent's."""

    def __init__(self, question: str, attachments: Attachments | None = None) -> None:
        self.question = question
        self._obstacle = ATTACHED if attachments else ""
        self._nodes: list[str] = []
        self._mode = ""
        self._asked_at = 0.0
        self._history: list[PastTurn] = []
        self._places: dict[Place, tuple[str, float]] = {}  # symbol and score
        self._kept: set[Place] = set()
        self._replies: list[Mapping[str, Any]] = []

    def take(self, event: AgentEvent) -> None:
        """Add an event."""
        payload = event.payload
        if event.kind == "step_end":
            self._take_step(payload["node"], payload["changes"])
        elif event.kind == "evidence":
            for at in payload["locations"]:
                self._places.setdefault((at.path, at.start_line, at.end_line, at.commit), ("", 0.0))
        elif event.kind == "tool_start" and payload["tool"] == _WEB_TOOL:
            self._obstacle = ASKED_THE_WEB
        elif event.kind == "model_end":
            from agent import record_reply

            self._replies.append(record_reply(payload))

    def _take_step(self, node: str, changes: Mapping[str, Any]) -> None:
        self._nodes.append(node)
        if node == "input_preprocessor":
            self._mode = str(changes["mode"])
        for name in ("retrieved", "expanded", "shown"):
            if name not in changes or node == "conversation_memory":  # which empties them
                continue
            listed = {
                (one["path"], one["start_line"], one["end_line"], one.get("commit", "")): one for one in changes[name]
            }
            if name == "retrieved":
                self._kept = set()
            self._kept |= listed.keys()
            for place, one in listed.items():
                if "score" in one:
                    self._places[place] = (one["symbol"], one["score"])
        if (history := changes.get("conversation_history")) is not None:
            *self._history, own = history
            self._asked_at = own["asked_at"]

    def make_record(self, answer: Answer, at: Mapping[str, str], versions: Mapping[str, str]) -> AnswerRecord:
        """Return the record of the run's answer."""
        taken_up = "" if self._nodes[:1] == [_FIRST_NODE] and self._asked_at else TAKEN_UP
        return AnswerRecord(
            question=self.question,
            asked_at=self._asked_at,
            commits=dict(answer.read_at),
            text=answer.text,
            citations=tuple(
                f"{one.repository}:{one.path}:{one.start_line}-{one.end_line}@{one.commit}" for one in answer.citations
            ),
            at=at,
            history=self._history,
            evidence=tuple(
                EvidencePlace(
                    path=path, start_line=start, end_line=end, commit=commit, symbol=symbol, score=round(score, 4),
                    use=self._find_use((path, start, end, commit), answer),
                )
                for (path, start, end, commit), (symbol, score) in self._places.items()
                if path
            ),
            model=answer.model or "",
            mode=self._mode or "rules",
            replies=self._replies,
            versions=versions,
            obstacle=taken_up or self._obstacle,
        )  # fmt: skip

    def _find_use(self, place: Place, answer: Answer) -> Use:
        """Return the use of read lines: cited lines may be a part of them."""
        path, start, end, _ = place
        for cited in answer.citations:
            is_its = path == cited.path or bool(answer.commits and path.endswith(f"/{cited.path}"))
            if is_its and cited.start_line <= end and start <= cited.end_line:
                return "cited"
        return "kept" if place in self._kept else "rejected"
