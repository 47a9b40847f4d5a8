"""Cleans the question, classifies it, and resolves its references."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

from agent.errors import ModelError
from agent.evidence.intent_router import asks_for_dependencies
from agent.guard.injection.normalization import strip_invisible
from agent.guard.thread_quotes import read_quotes, split_background
from agent.ports import Deps, Runtime
from agent.prompts.answer_prompts import PREPROCESS, format_past_turns, load_overview, make_messages
from agent.prompts.output_schemas import IntentOutput
from agent.questions.attachments import find_attached_error, find_attached_name
from agent.questions.follow_ups import (
    Antecedent,
    find_antecedent,
    find_continuation,
    find_run_turn,
    find_thread_antecedent,
    find_thread_subject,
    is_pointing_back,
    resolve_references,
    resolve_selection,
)
from agent.questions.intent import (
    clean_question,
    find_small_talk,
    is_history_request,
    is_repeat_request,
    is_rewording_request,
)
from agent.questions.intents.model import SURE, IntentName, load_model
from agent.questions.literals import find_quoted_messages
from agent.questions.mentions import find_mentions
from agent.questions.question_parts import drop_talk
from agent.questions.remarks import is_bare_question
from agent.questions.stack_traces import parse_frames
from agent.questions.terms import find_content_terms
from agent.state import AgentState, AnswerMode, Intent, PastTurn, TextExcerpt
from agent.text.escaping import format_code_span
from agent.text.storable import make_storable

MAX_LISTED = 20
_MAX_STANDALONE = 1000
# Words that may lean on what was said before, where no pattern is sure that they do.
_LEANING = re.compile(
    r"\b(?:it|its|that|this|these|those|they|them|there|same|other|another|else|more|instead|above|previous|earlier|last"
    r"|first|one|again|also|simpler|shorter|detail|details|example|rephrase|summari[sz]e|shorten|elaborate)\b",
    re.IGNORECASE,
)
_PROJECT = re.compile(
    r"\b(?:this|the|our|your)\s(?:project|repo|repository|codebase|code\sbase|library|package|app|application|tool)\b",
    re.IGNORECASE,
)
_PRONOUN = re.compile(r"\b(?:it|its|they|their)\b", re.IGNORECASE)
_FEW_TERMS = 2
_BRIEF = 48  # characters of a message that may refer to earlier ones in a language without patterns
# Intents whose "it" is the project unless something else was mentioned.
_OF_PROJECT: frozenset[IntentName] = frozenset({"command", "overview", "people", "listing", "changes"})
_MIN_TERMS = 2  # with which an "it" that points at nothing can be the project
# Intents that a thread may add to, despite earlier turns.
_OPEN: frozenset[Intent] = frozenset({"new_question", "out_of_scope"})
log = logging.getLogger(__name__)

NOTHING_ASKED = "You have not asked anything in this conversation yet."


async def input_preprocessor(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Classify the question and make it self-contained; a model is asked only if the patterns are unsure.

    Messages around it add context only if the question itself lacks it. Reads user_query, attached,
    conversation_history. Writes cleaned_query, lookup_query, mode, codebase_tree, skip, background, intent,
    is_follow_up, needs_retrieval, and final_answer when the history is the answer.
    """
    runtime.context.emit("step_start", node="input_preprocessor", stage="Understanding the question")
    history = state.get("conversation_history", [])
    # From here on nobody sees a secret that was pasted into the question.
    own, background = split_background(strip_invisible(runtime.context.redact(state.get("user_query", ""))))
    question = clean_question(drop_talk(own))
    further = find_continuation(question, history)
    picked = further["question"] if further is not None else resolve_selection(question, history)
    intent = _classify_intent(question, history) if picked is None else "follow_up_with_retrieval"
    target = find_antecedent(history)
    main = runtime.context.models.main
    mode: AnswerMode = "rules" if main is None else "tools" if main.calls_tools else "forms"  # as far as is known
    tree = await load_overview(state, runtime.context) if mode != "rules" else ""
    written = own.strip()
    completed = complete_from_attachments(question, state.get("attached", []))
    if not completed and (target is None or intent in _OPEN):
        completed = _complete_from_thread(question, read_quotes(background))
    if picked is not None:
        question = picked
    elif completed:
        intent, question = "new_question", completed
    elif intent == "follow_up_with_retrieval" and target is not None:
        question = resolve_references(question, target)
    elif mode == "forms" and intent == "new_question" and _may_lean(question, history):
        intent, question = await _read_by_model(question, history, runtime.context, tree)
    lookup = question
    if mode == "tools" and picked is None and history:
        intent, lookup = _lean_on_history(clean_question(own), question, intent, history)
    is_repeat = intent == "follow_up" and is_repeat_request(clean_question(own))
    changes: AgentState = {
        "cleaned_query": written if mode == "tools" else question,
        "lookup_query": lookup if mode == "tools" else "",
        "mode": "rules" if is_repeat else mode,
        "codebase_tree": tree,
        "skip": further["skip"] if further is not None else 0,
        "background": list(background),
        "intent": intent,
        "is_follow_up": intent in {"follow_up", "follow_up_with_retrieval"},
        "needs_retrieval": intent in {"new_question", "follow_up_with_retrieval"},
    }
    if intent == "history_request":
        changes["final_answer"] = _format_questions(history)
        runtime.context.emit("token", text=changes["final_answer"])
    return changes


def _lean_on_history(written: str, resolved: str, intent: Intent, history: Sequence[PastTurn]) -> tuple[Intent, str]:
    """Return the intent of a message in a conversation for a model that reads it unchanged, and its lookups.

    The model has the last turns and their evidence; a search is worthwhile only if the message has
    words of its own. A brief message gets that evidence even if no pattern recognises a reference,
    because there are many languages.
    """
    if intent in {"history_request", "follow_up"} or find_small_talk(written) is not None:
        return intent, resolved
    if is_rewording_request(written):
        return "follow_up", written
    if resolved != written:
        return "follow_up_with_retrieval", resolved
    if intent == "new_question" and not _may_lean(written, history):
        is_brief = len(written) <= _BRIEF and not _has_subject(written)
        return ("follow_up_with_retrieval" if is_brief else intent), written
    if not find_content_terms(written):
        return "follow_up", written
    return "follow_up_with_retrieval", f"{written} {history[-1]['question']}"[:_MAX_STANDALONE]


def _complete_from_thread(question: str, messages: Sequence[str]) -> str:
    """Return the subject of a question in a thread that does not name it; empty for others."""
    is_talk = find_small_talk(question) not in {None, "abilities"} and "?" not in question
    if not messages or is_talk:
        return ""
    subject = find_thread_subject(messages)
    if is_bare_question(question):
        return subject
    if not is_pointing_back(question) or _has_subject(question):
        return ""
    target = find_thread_antecedent(messages)
    if target is not None:
        return resolve_references(question, target)
    return f"{question} {subject}" if subject else ""


def complete_from_attachments(question: str, attached: Sequence[TextExcerpt]) -> str:
    """Complete a question with the attached error, or with the name that "this" means in attached code."""
    error = find_attached_error(attached)
    if error:
        return f"{question}\n\n{error}"
    name = find_attached_name(attached)
    if not name or _has_subject(question) or not (is_bare_question(question) or is_pointing_back(question)):
        return ""
    return resolve_references(question, Antecedent(symbol=name, kind="", path=""))


def _classify_intent(question: str, history: Sequence[PastTurn]) -> Intent:
    if is_history_request(question):
        return "history_request"
    is_of_last = is_repeat_request(question) or is_rewording_request(question, names_form=True)
    if (history and is_of_last) or find_run_turn(question, history) is not None:
        return "follow_up"
    if find_small_talk(question) is not None:
        return "out_of_scope"
    if _has_subject(question) or not is_pointing_back(question):
        return "new_question"
    if find_antecedent(history) is not None:
        return "follow_up_with_retrieval"
    # A question that points at something is no question when nothing has been said, unless it can mean the project.
    best = load_model().rank(question)[0]
    is_of_project = (best.name in _OF_PROJECT and best.confidence >= SURE) or asks_for_dependencies(question)
    says_enough = len(find_content_terms(question)) >= _MIN_TERMS
    is_clear = is_of_project or says_enough
    return "new_question" if is_clear else "out_of_scope"


def _may_lean(question: str, history: Sequence[PastTurn]) -> bool:
    """Whether a question that looks new may refer to earlier turns."""
    if not history or _has_subject(question):
        return False
    return _LEANING.search(question) is not None or len(find_content_terms(question)) <= _FEW_TERMS


def _has_subject(question: str) -> bool:
    """Whether a question names its subject: the project, a name, a stack trace, a quoted message."""
    if find_mentions(question).anything or parse_frames(question) or find_quoted_messages(question):
        return True
    project = _PROJECT.search(question)  # the meaning of a later "it"
    return project is not None and _PRONOUN.search(question, project.end()) is not None


async def _read_by_model(question: str, history: Sequence[PastTurn], deps: Deps, tree: str) -> tuple[Intent, str]:
    """Ask the small model; without one, or if it fails, the question is new."""
    if deps.models.small is None:
        return "new_question", question
    try:
        talk = format_past_turns({"conversation_history": [*history]}, deps)
        material = {"The repository": tree, "The conversation": talk, "The message": deps.redact(question)}
        messages = make_messages(PREPROCESS, material, deps)
        form = await deps.models.small.generate_structured(messages, IntentOutput, task="input_preprocessor")
    except ModelError as error:
        log.warning("the question is treated as a new one: %s", error)
        return "new_question", question
    alone = make_storable(clean_question(strip_invisible(form.standalone[:_MAX_STANDALONE])))
    if form.intent == "follow_up_with_retrieval":
        return (form.intent, alone) if alone else ("new_question", question)
    return form.intent, question


def _format_questions(history: Sequence[PastTurn]) -> str:
    if not history:
        return NOTHING_ASKED
    shown = history[-MAX_LISTED:]
    first = len(history) - len(shown) + 1
    items = [f"{number}. {format_code_span(turn['question'], longest=200)}" for number, turn in enumerate(shown, first)]
    return "\n".join(["You asked:", "", *items])
