"""Answers one question: a guarded graph from the question to a checked, cited answer.

These names are all that others use, beside `agent.text`; each is imported when it is first used, as some take a second.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.agent import Agent
    from agent.answers.extractive import describe_meanings
    from agent.conversations import open_conversations, prune_idle_conversations
    from agent.errors import (
        INTERRUPTED,
        STOPPED,
        AgentError,
        CheckpointOvertaken,
        CheckpointUnreachable,
        ClassifierUnusable,
        CodeMoved,
        SchemaError,
        UnknownRun,
    )
    from agent.events import AgentEvent, AsyncEventBus, EventKind, Subscription
    from agent.evidence.coverage import Denial, deny, explain_no_calls, explain_undefined
    from agent.goals.checks.goal_registry import GoalRegistry
    from agent.goals.checks.goal_requests import (
        WantedGoal,
        claim_answer,
        is_inference,
        is_verify_request,
        parse_goal_request,
    )
    from agent.goals.goal_agent import GoalAgent
    from agent.goals.goal_verdict import GoalVerdict
    from agent.goals.proposal import GoalProposal, GoalRequest
    from agent.goals.sandbox_tools import make_goal_tools
    from agent.goals.workspace import open_copy
    from agent.graph import Step, build_graph, list_steps
    from agent.guard.approval import UNDECIDED, is_undecided, parse_decision, parse_run_decision
    from agent.guard.classifier.background_classifier import BackgroundClassifier
    from agent.guard.classifier.onnx_model import OnnxModel
    from agent.guard.size import MAX_QUESTION, MAX_RAW_TEXT, QUESTION_TOO_LONG, fit_text
    from agent.guard.thread_quotes import BACKGROUND_HEADING, quote_line, read_quotes, with_background
    from agent.history.changes import AskedComparison, parse_comparison
    from agent.limits import TokenUsage, TurnLimits
    from agent.llm.chat_model import ping_model
    from agent.llm.models import RetryPolicy, open_models
    from agent.llm.providers import Sampling
    from agent.lookups.catalogue import LOOKUPS
    from agent.lookups.lookup import Arguments, CodeLookup, Look, Offset, explain_arguments
    from agent.lookups.read_file import read_lines
    from agent.lookups.results import NEXT, FileText, LookupResult, ReadCoverage, describe_coverage, describe_missing
    from agent.persistence.conversation_schema import create_checkpoint_tables, load_conversation_schema
    from agent.persistence.memory_store import open_memory_store
    from agent.persistence.migrations import Schema, list_copies, migrate_database, run_statement
    from agent.persistence.postgres.connections import APPLICATION_NAME, heed_cancels, make_postgres_options
    from agent.persistence.postgres.conversation_copy import (
        ConversationCounts,
        copy_conversations_to_postgres,
        copy_conversations_to_sqlite,
    )
    from agent.persistence.postgres.saver import prepare_postgres_conversations
    from agent.persistence.postgres_migrations import migrate_postgres
    from agent.ports import (
        Answer,
        ChatModel,
        Citation,
        Classifier,
        CodeLibrary,
        CodeSearch,
        ModelSource,
        RunPermit,
        SourceFiles,
    )
    from agent.questions.attachments import AttachedImage, AttachedText, Attachments
    from agent.questions.follow_ups import concerns_answer
    from agent.questions.intent import find_small_talk, is_history_request, is_repeat_request
    from agent.questions.intents.placeholders import write_example
    from agent.questions.mentions import find_mentions, normalize_name
    from agent.questions.remarks import is_bare_question, is_statement, is_stop_request
    from agent.questions.stack_traces import parse_error_name, parse_frames
    from agent.questions.terms import find_content_terms, match_terms
    from agent.sandbox.trials import SandboxTrial, find_sandbox, try_sandboxes
    from agent.sandbox.working_copy import WorkingCopy
    from agent.tools.web_search import SearxngSearch

__all__ = [
    "APPLICATION_NAME",
    "BACKGROUND_HEADING",
    "INTERRUPTED",
    "LOOKUPS",
    "MAX_QUESTION",
    "MAX_RAW_TEXT",
    "NEXT",
    "QUESTION_TOO_LONG",
    "STOPPED",
    "UNDECIDED",
    "Agent",
    "AgentError",
    "AgentEvent",
    "Answer",
    "Arguments",
    "AskedComparison",
    "AsyncEventBus",
    "AttachedImage",
    "AttachedText",
    "Attachments",
    "BackgroundClassifier",
    "ChatModel",
    "CheckpointOvertaken",
    "CheckpointUnreachable",
    "Citation",
    "Classifier",
    "ClassifierUnusable",
    "CodeLibrary",
    "CodeLookup",
    "CodeMoved",
    "CodeSearch",
    "ConversationCounts",
    "Denial",
    "EventKind",
    "FileText",
    "GoalAgent",
    "GoalProposal",
    "GoalRegistry",
    "GoalRequest",
    "GoalVerdict",
    "Look",
    "LookupResult",
    "ModelSource",
    "Offset",
    "OnnxModel",
    "ReadCoverage",
    "RetryPolicy",
    "RunPermit",
    "Sampling",
    "SandboxTrial",
    "Schema",
    "SchemaError",
    "SearxngSearch",
    "SourceFiles",
    "Step",
    "Subscription",
    "TokenUsage",
    "TurnLimits",
    "UnknownRun",
    "WantedGoal",
    "WorkingCopy",
    "build_graph",
    "claim_answer",
    "concerns_answer",
    "copy_conversations_to_postgres",
    "copy_conversations_to_sqlite",
    "create_checkpoint_tables",
    "deny",
    "describe_coverage",
    "describe_meanings",
    "describe_missing",
    "explain_arguments",
    "explain_no_calls",
    "explain_undefined",
    "find_content_terms",
    "find_mentions",
    "find_sandbox",
    "find_small_talk",
    "fit_text",
    "heed_cancels",
    "is_bare_question",
    "is_history_request",
    "is_inference",
    "is_repeat_request",
    "is_statement",
    "is_stop_request",
    "is_undecided",
    "is_verify_request",
    "list_copies",
    "list_steps",
    "load_conversation_schema",
    "make_goal_tools",
    "make_postgres_options",
    "match_terms",
    "migrate_database",
    "migrate_postgres",
    "normalize_name",
    "open_conversations",
    "open_copy",
    "open_memory_store",
    "open_models",
    "parse_comparison",
    "parse_decision",
    "parse_error_name",
    "parse_frames",
    "parse_goal_request",
    "parse_run_decision",
    "ping_model",
    "prepare_postgres_conversations",
    "prune_idle_conversations",
    "quote_line",
    "read_lines",
    "read_quotes",
    "run_statement",
    "try_sandboxes",
    "with_background",
    "write_example",
]

_HOMES = {
    "agent.agent": "Agent",
    "agent.answers.extractive": "describe_meanings",
    "agent.conversations": "open_conversations prune_idle_conversations",
    "agent.errors": (
        "INTERRUPTED STOPPED AgentError CheckpointOvertaken CheckpointUnreachable ClassifierUnusable "
        "CodeMoved SchemaError UnknownRun"
    ),
    "agent.events": "AgentEvent AsyncEventBus EventKind Subscription",
    "agent.evidence.coverage": "Denial deny explain_no_calls explain_undefined",
    "agent.goals.checks.goal_registry": "GoalRegistry",
    "agent.goals.checks.goal_requests": "WantedGoal claim_answer is_inference is_verify_request parse_goal_request",
    "agent.goals.goal_agent": "GoalAgent",
    "agent.goals.goal_verdict": "GoalVerdict",
    "agent.goals.proposal": "GoalProposal GoalRequest",
    "agent.goals.sandbox_tools": "make_goal_tools",
    "agent.goals.workspace": "open_copy",
    "agent.graph": "Step build_graph list_steps",
    "agent.guard.approval": "UNDECIDED is_undecided parse_decision parse_run_decision",
    "agent.guard.classifier.background_classifier": "BackgroundClassifier",
    "agent.guard.classifier.onnx_model": "OnnxModel",
    "agent.guard.size": "MAX_QUESTION MAX_RAW_TEXT QUESTION_TOO_LONG fit_text",
    "agent.guard.thread_quotes": "BACKGROUND_HEADING quote_line read_quotes with_background",
    "agent.history.changes": "AskedComparison parse_comparison",
    "agent.limits": "TokenUsage TurnLimits",
    "agent.llm.chat_model": "ping_model",
    "agent.llm.models": "RetryPolicy open_models",
    "agent.llm.providers": "Sampling",
    "agent.lookups.catalogue": "LOOKUPS",
    "agent.lookups.lookup": "Arguments CodeLookup Look Offset explain_arguments",
    "agent.lookups.read_file": "read_lines",
    "agent.lookups.results": "NEXT FileText LookupResult ReadCoverage describe_coverage describe_missing",
    "agent.persistence.conversation_schema": "create_checkpoint_tables load_conversation_schema",
    "agent.persistence.memory_store": "open_memory_store",
    "agent.persistence.migrations": "Schema list_copies migrate_database run_statement",
    "agent.persistence.postgres.connections": "APPLICATION_NAME heed_cancels make_postgres_options",
    "agent.persistence.postgres.conversation_copy": (
        "ConversationCounts copy_conversations_to_postgres copy_conversations_to_sqlite"
    ),
    "agent.persistence.postgres.saver": "prepare_postgres_conversations",
    "agent.persistence.postgres_migrations": "migrate_postgres",
    "agent.ports": "Answer ChatModel Citation Classifier CodeLibrary CodeSearch ModelSource RunPermit SourceFiles",
    "agent.questions.attachments": "AttachedImage AttachedText Attachments",
    "agent.questions.follow_ups": "concerns_answer",
    "agent.questions.intent": "find_small_talk is_history_request is_repeat_request",
    "agent.questions.intents.placeholders": "write_example",
    "agent.questions.mentions": "find_mentions normalize_name",
    "agent.questions.remarks": "is_bare_question is_statement is_stop_request",
    "agent.questions.stack_traces": "parse_error_name parse_frames",
    "agent.questions.terms": "find_content_terms match_terms",
    "agent.sandbox.trials": "SandboxTrial find_sandbox try_sandboxes",
    "agent.sandbox.working_copy": "WorkingCopy",
    "agent.tools.web_search": "SearxngSearch",
}
_MODULES = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
