"""Answers one question: a guarded graph from the question to a checked, cited answer.

These names are all that others use, beside `agent.text`; each is imported when it is first used, as some take a second.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.agent import Agent
    from agent.errors import INTERRUPTED, STOPPED, AgentError, ClassifierUnusable, SchemaError, UnknownRun
    from agent.events import AgentEvent, AsyncEventBus, EventKind, Subscription
    from agent.graph import build_graph
    from agent.guard.approval import parse_decision
    from agent.guard.classifier.background_classifier import BackgroundClassifier
    from agent.guard.classifier.onnx_model import OnnxModel
    from agent.guard.size import MAX_QUESTION, MAX_RAW_TEXT, QUESTION_TOO_LONG, fit_text
    from agent.guard.thread_quotes import BACKGROUND_HEADING, quote_line, read_quotes, with_background
    from agent.limits import TokenUsage, TurnLimits
    from agent.llm.chat_model import ping_model
    from agent.llm.metered_model import RetryPolicy
    from agent.llm.models import open_models
    from agent.llm.providers import Sampling
    from agent.persistence.checkpointer import open_saver
    from agent.persistence.conversation_schema import create_checkpoint_tables, load_conversation_schema
    from agent.persistence.memory_store import open_memory_store
    from agent.persistence.migrations import Schema, list_copies, migrate_database, run_statement
    from agent.persistence.postgres_migrations import migrate_postgres
    from agent.persistence.pruning import prune_idle_conversations
    from agent.ports import (
        Answer,
        ChatModel,
        Citation,
        Classifier,
        CodeLibrary,
        CodeSearch,
        ModelSource,
        SourceFiles,
    )
    from agent.questions.intent import find_small_talk, is_history_request, is_repeat_request
    from agent.questions.mentions import find_mentions, normalize_name
    from agent.questions.remarks import is_bare_question, is_statement, is_stop_request
    from agent.questions.stack_traces import parse_error_name, parse_frames
    from agent.questions.terms import find_content_terms, match_terms
    from agent.tools.searxng import SearxngSearch

__all__ = [
    "BACKGROUND_HEADING",
    "INTERRUPTED",
    "MAX_QUESTION",
    "MAX_RAW_TEXT",
    "QUESTION_TOO_LONG",
    "STOPPED",
    "Agent",
    "AgentError",
    "AgentEvent",
    "Answer",
    "AsyncEventBus",
    "BackgroundClassifier",
    "ChatModel",
    "Citation",
    "Classifier",
    "ClassifierUnusable",
    "CodeLibrary",
    "CodeSearch",
    "EventKind",
    "ModelSource",
    "OnnxModel",
    "RetryPolicy",
    "Sampling",
    "Schema",
    "SchemaError",
    "SearxngSearch",
    "SourceFiles",
    "Subscription",
    "TokenUsage",
    "TurnLimits",
    "UnknownRun",
    "build_graph",
    "create_checkpoint_tables",
    "find_content_terms",
    "find_mentions",
    "find_small_talk",
    "fit_text",
    "is_bare_question",
    "is_history_request",
    "is_repeat_request",
    "is_statement",
    "is_stop_request",
    "list_copies",
    "load_conversation_schema",
    "match_terms",
    "migrate_database",
    "migrate_postgres",
    "normalize_name",
    "open_memory_store",
    "open_models",
    "open_saver",
    "parse_decision",
    "parse_error_name",
    "parse_frames",
    "ping_model",
    "prune_idle_conversations",
    "quote_line",
    "read_quotes",
    "run_statement",
    "with_background",
]

_HOMES = {
    "agent.agent": "Agent",
    "agent.errors": "INTERRUPTED STOPPED AgentError ClassifierUnusable SchemaError UnknownRun",
    "agent.events": "AgentEvent AsyncEventBus EventKind Subscription",
    "agent.graph": "build_graph",
    "agent.guard.approval": "parse_decision",
    "agent.guard.classifier.background_classifier": "BackgroundClassifier",
    "agent.guard.classifier.onnx_model": "OnnxModel",
    "agent.guard.size": "MAX_QUESTION MAX_RAW_TEXT QUESTION_TOO_LONG fit_text",
    "agent.guard.thread_quotes": "BACKGROUND_HEADING quote_line read_quotes with_background",
    "agent.limits": "TokenUsage TurnLimits",
    "agent.llm.chat_model": "ping_model",
    "agent.llm.metered_model": "RetryPolicy",
    "agent.llm.providers": "Sampling",
    "agent.llm.models": "open_models",
    "agent.persistence.checkpointer": "open_saver",
    "agent.persistence.conversation_schema": "create_checkpoint_tables load_conversation_schema",
    "agent.persistence.memory_store": "open_memory_store",
    "agent.persistence.migrations": "Schema list_copies migrate_database run_statement",
    "agent.persistence.postgres_migrations": "migrate_postgres",
    "agent.persistence.pruning": "prune_idle_conversations",
    "agent.ports": "Answer ChatModel Citation Classifier CodeLibrary CodeSearch ModelSource SourceFiles",
    "agent.questions.intent": "find_small_talk is_history_request is_repeat_request",
    "agent.questions.mentions": "find_mentions normalize_name",
    "agent.questions.remarks": "is_bare_question is_statement is_stop_request",
    "agent.questions.stack_traces": "parse_error_name parse_frames",
    "agent.questions.terms": "find_content_terms match_terms",
    "agent.tools.searxng": "SearxngSearch",
}
_MODULES = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
