"""The values that surfaces report, which become JSON: the events from a question to its answer, and its state later."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from bot.living.edits import describe_changes
from bot.storage.living_answers import FollowedPlace, LivingAnswer, LivingAnswerStore
from indexer import TELLING_FATES

Line = Annotated[int, Field(ge=1)]
# Why there is no answer: the person has asked too much, or may not; the repository is missing, or not for them; it
# is unclear which one is meant; the question is empty or too long; it was stopped; it took too long; something failed.
Reason = Literal[
    "limit", "not_allowed", "unknown_repository", "unclear_repository", "unknown_ref", "bad_question", "stopped",
    "late", "failed",
]  # fmt: skip


class SurfaceValue(BaseModel):
    """An immutable value of a surface, without other fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class RunBegun(SurfaceValue):
    """The question is accepted.

    `run_id` names the run, for `stop`; `conversation` continues it with the next question, empty if
    nothing is remembered.
    """

    kind: Literal["begun"] = "begun"
    run_id: str
    conversation: str = ""


class StageBegun(SurfaceValue):
    """The stage that begins, in words for people; `before` is how many questions are answered first."""

    kind: Literal["stage"] = "stage"
    text: str
    before: int = 0


class TextPart(SurfaceValue):
    """Text of the answer, safe to show as Markdown. It follows the earlier text, or `replaces` it."""

    kind: Literal["text"] = "text"
    text: str
    replaces: bool = False


class CodePlace(SurfaceValue):
    """Lines of a file at the pinned commit, and their web address."""

    path: str
    first_line: Line
    last_line: Line
    url: str | None = None


class EvidenceFound(SurfaceValue):
    """Places that were found for the answer."""

    kind: Literal["evidence"] = "evidence"
    places: tuple[CodePlace, ...]


class CitedPlace(SurfaceValue):
    """The place of a mark such as `[1]`; with an empty path, the commit itself."""

    mark: int
    repository: str
    commit: str
    path: str
    first_line: int
    last_line: int
    url: str | None = None


class AnswerCost(SurfaceValue):
    """The cost of an answer; `dollars` is None if the price of a model is not in the settings."""

    seconds: float = 0.0
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float | None = None


class Answered(SurfaceValue):
    """The answer. `text` is safe Markdown with marks such as `[1]`.

    In `linked` they are links, and the places without an address are listed below. `found` is False if the repository
    has nothing that clearly answers. `waits` means that the text asks something back, which a message in the same
    conversation answers. `repository` and `commit` are empty if none was read, or several: those are in `commits`.
    `freshness` describes the age of the commit.
    """

    kind: Literal["answer"] = "answer"
    run_id: str
    conversation: str = ""
    text: str
    linked: str
    citations: tuple[CitedPlace, ...] = ()
    repository: str = ""
    commit: str = ""
    commits: dict[str, str] = Field(default_factory=dict)
    missing: dict[str, str] = Field(default_factory=dict)
    found: bool = False
    waits: bool = False
    route: str = ""
    model: str | None = None
    freshness: str = ""
    cost: AnswerCost = Field(default_factory=AnswerCost)


class NotAnswered(SurfaceValue):
    """There is no answer, and `text` gives the reason; earlier text has been sent."""

    kind: Literal["failed"] = "failed"
    reason: Reason
    text: str
    retry_after: float | None = None


AskEvent = RunBegun | StageBegun | TextPart | EvidenceFound | Answered | NotAnswered


class PlaceState(SurfaceValue):
    """The lines of an answer's mark at the followed commit."""

    mark: int
    repository: str
    path: str
    first_line: int
    last_line: int
    state: Literal["unchanged", "moved", "changed", "gone"]


class AnswerState(SurfaceValue):
    """The state of an answer. It is `outdated` since a commit if its content has changed, not if lines moved.

    `summary` describes the changes in Markdown, and `changes` lists them with links to the differences. `commits` are
    those of the answer.
    """

    run_id: str
    state: Literal["current", "outdated"]
    since: str = ""
    summary: str = ""
    changes: tuple[str, ...] = ()
    places: tuple[PlaceState, ...] = ()
    commits: dict[str, str]


async def read_state(store: LivingAnswerStore, answer: LivingAnswer, hosts: Collection[str]) -> AnswerState:
    """Read the state of an answer for a reader who may ask about all of its repositories."""
    places = [
        PlaceState(
            mark=one.cited.mark, repository=one.cited.repository, path=one.now.path, first_line=one.now.start_line,
            last_line=one.now.end_line, state=_name_fate(one),
        )
        for one in await store.list_places(answer.run_id)
    ]  # fmt: skip
    return AnswerState(
        run_id=answer.run_id, state="outdated" if answer.changes else "current", since=answer.since,
        summary=describe_changes(answer, hosts), changes=answer.changes[1:], places=tuple(places),
        commits=dict(answer.commits),
    )  # fmt: skip


def _name_fate(place: FollowedPlace) -> Literal["unchanged", "moved", "changed", "gone"]:
    if place.now.fate in TELLING_FATES:
        return "gone" if place.now.fate == "gone" else "changed"
    return "moved" if place.has_moved else "unchanged"
