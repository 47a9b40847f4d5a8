"""Keeps relevant hits: by score and words, and by a model in doubtful cases."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from agent.errors import ModelError
from agent.evidence.refs import is_overlapping
from agent.guard.reading_tools import harden, note_flags
from agent.ports import ChatModel, Deps, Runtime, SourceFiles, TextSearch
from agent.prompts.answer_prompts import GRADE, load_overview, make_messages
from agent.prompts.output_schemas import GradeOutput
from agent.prompts.prompt_evidence import PromptEvidence, collect_flags, format_prompt_evidence, load_prompt_evidence
from agent.questions.mentions import find_mentions
from agent.questions.terms import find_content_terms, match_terms
from agent.state import AgentState, EvidenceRef, Grade, make_empty_metadata, to_location
from agent.text.storable import make_storable
from indexer.errors import IndexerError

KEEP_SHARE = 0.25  # of the best hit's score
CLEAR_SHARE = 0.25  # of the question's words, found in one hit
SURE_SHARE = 0.6  # of them, and no model need be asked
MAX_GRADED = 8
MAX_READ = 30  # by a model that writes the answer, as far as they fit its prompt
MAX_SEARCHES = 3  # rounds of searching, the first included
_MAX_QUERY = 300
_FEW_TERMS = 3

log = logging.getLogger(__name__)


async def grade_documents(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Drop hits far below the best, and decide whether the rest suffices, or another query is worthwhile.

    Reads retrieved, retrieval_metadata, cleaned_query, lookup_query, router_output,
    iteration_count, mode, flagged, codebase_tree. Writes retrieved, retrieval_metadata, grade,
    better_query, flagged.
    """
    deps = runtime.context
    deps.emit("step_start", node="grade_documents", stage="Grading the results")
    retrieved = state.get("retrieved", [])
    hits = [ref for ref in retrieved if ref["role"] == "hit"]
    best = max((ref["score"] for ref in hits), default=0.0)
    close = [ref for ref in hits if best <= 0 or ref["score"] >= KEEP_SHARE * best]
    kept = close[:MAX_GRADED]
    exact = [ref for ref in retrieved if ref["role"] != "hit"]
    asked_for = state.get("lookup_query") or state.get("cleaned_query", "")
    share = await _measure_best_share(deps.code, kept, find_content_terms(asked_for))
    flagged = state.get("flagged", [])
    form = None
    shown: list[PromptEvidence] = []
    if deps.models.small is not None and state.get("mode") != "tools" and _is_doubtful(state, share, exact):
        shown = await load_prompt_evidence(deps, kept, question=state.get("cleaned_query", ""))
        flagged = note_flags(flagged, collect_flags(shown), deps, source="repository")
        form = await _grade_hits(state, harden(deps) if flagged else deps, deps.models.small, shown)
    if form is not None:
        relevant_hits = _find_relevant(form, shown, kept) or kept
        kept = _put_first(relevant_hits, close[:MAX_READ]) if deps.models.main is not None else relevant_hits
    elif deps.models.main is not None:
        kept = close[:MAX_READ]
    metadata = state.get("retrieval_metadata", make_empty_metadata())
    if not exact and form is None and await _names_what_is_nowhere(deps.code, state.get("cleaned_query", "")):
        share = 0.0
    grade = _decide_grade(form, share, state)
    weak = not exact and (share < CLEAR_SHARE if form is None else grade != "enough")
    deps.emit("goal_check", passed=grade == "enough", grade=grade)
    return {
        "retrieved": [*exact, *kept],
        "retrieval_metadata": {**metadata, "weak": weak},
        "grade": grade,
        "better_query": _read_better_query(form) if grade == "rewrite" else "",
        "flagged": flagged,
    }


def _find_relevant(
    form: GradeOutput, shown: Sequence[PromptEvidence], hits: Sequence[EvidenceRef]
) -> list[EvidenceRef]:
    """Return the hits with lines under the numbers of relevant ones."""
    chosen = set(form.relevant[:100])
    places = [one.location for one in shown if one.number in chosen]
    return [hit for hit in hits if any(is_overlapping(to_location(hit), place) for place in places)]


def _put_first(relevant: Sequence[EvidenceRef], close: Sequence[EvidenceRef]) -> list[EvidenceRef]:
    """Put relevant evidence first; a model that writes learns only the places of the rest."""
    rest: list[EvidenceRef] = [{**ref, "score": 0.0} for ref in close if ref not in relevant]
    return [*relevant, *rest]


def _is_doubtful(state: AgentState, share: float, exact: Sequence[EvidenceRef]) -> bool:
    """Whether to ask a model: not if words settle it, nor for an undefined name."""
    decided = state.get("router_output")
    return share < SURE_SHARE and not exact and not (decided is not None and decided["unknown"])


async def _grade_hits(
    state: AgentState, deps: Deps, model: ChatModel, shown: Sequence[PromptEvidence]
) -> GradeOutput | None:
    """Let the model judge; None if it fails, so that the scores decide."""
    material = {
        "The repository": await load_overview(state, deps),
        "The question": deps.redact(state.get("cleaned_query", "")),
        "What was searched for": "\n".join(state.get("retrieval_metadata", make_empty_metadata())["searched"]),
        "The results": format_prompt_evidence(shown),
    }
    try:
        return await model.generate_structured(
            make_messages(GRADE, material, deps), GradeOutput, task="grade_documents"
        )
    except ModelError as error:
        log.warning("the hits were graded by their scores: %s", error)
        return None


def _decide_grade(form: GradeOutput | None, share: float, state: AgentState) -> Grade:
    if form is None:
        return "enough" if share >= CLEAR_SHARE else "give_up"
    if form.verdict != "rewrite":
        return form.verdict
    better = _read_better_query(form)
    searched = state.get("retrieval_metadata", make_empty_metadata())["searched"]
    is_new = bool(better) and better not in searched
    return "rewrite" if is_new and state.get("iteration_count", 0) < MAX_SEARCHES else "give_up"


def _read_better_query(form: GradeOutput | None) -> str:
    query = form.better_query if form is not None else ""
    line = " ".join(query[: 4 * _MAX_QUERY].split())[:_MAX_QUERY]
    return make_storable(line)


async def _measure_best_share(code: SourceFiles, hits: Sequence[EvidenceRef], terms: frozenset[str]) -> float:
    """Return the largest share of the question's words in one hit; a question without words cannot be judged."""
    if not terms:
        return 1.0
    matches = [match_terms(f"{ref['path']} {ref['symbol']} {await _read_text(code, ref)}", terms) for ref in hits]
    return max((len(match) / len(terms) for match in matches), default=0.0)


async def _names_what_is_nowhere(code: TextSearch, question: str) -> bool:
    """Whether a short question has a proper name that occurs nowhere, so that no hit answers it."""
    if len(find_content_terms(question)) > _FEW_TERMS:
        return False
    for word in find_mentions(question).words:
        if word.isascii() and not await code.search(word, limit=1, mode="lexical"):
            return True
    return False


async def _read_text(code: SourceFiles, ref: EvidenceRef) -> str:
    try:
        return (await code.read(ref["path"], ref["start_line"], ref["end_line"])).text
    except IndexerError:  # a hit that cannot be read is judged by its name alone
        return ""
