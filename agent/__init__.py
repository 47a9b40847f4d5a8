"""Answers one question: a guarded graph from the question to a checked, cited answer.

Other packages use only these names, besides `agent.text`; each is imported at its first use,
because some take a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexer.lazy_names import load_lazily

if TYPE_CHECKING:
    from agent.agent import Agent
    from agent.answers.extractive import describe_meanings
    from agent.answers.places import FRAME
    from agent.citations.claims import find_claimed_numbers, find_names
    from agent.conversations import open_conversations, prune_idle_conversations
    from agent.errors import (
        INTERRUPTED,
        STOPPED,
        AgentError,
        CheckpointOvertaken,
        CheckpointUnreachable,
        ClassifierUnusable,
        CodeMoved,
        UnknownRun,
    )
    from agent.events import AgentEvent, AsyncEventBus, EventKind, Subscription
    from agent.evidence.coverage import Denial, deny, explain_no_calls, explain_undefined
    from agent.evidence.named_uses import describe_named_uses
    from agent.goals.checks.goal_registry import GoalRegistry
    from agent.goals.checks.goal_requests import (
        WantedGoal,
        claim_answer,
        is_inference,
        is_verify_request,
        parse_goal_request,
    )
    from agent.goals.goal import GoalProposal, GoalRequest
    from agent.goals.goal_agent import GoalAgent
    from agent.goals.goal_verdict import GoalVerdict
    from agent.goals.sandbox_tools import make_goal_tools
    from agent.goals.workspace import open_copy
    from agent.graph import Step, build_graph, list_steps
    from agent.guard.approval import UNDECIDED, is_undecided, parse_decision, parse_run_decision
    from agent.guard.classifier.background_classifier import BackgroundClassifier
    from agent.guard.classifier.onnx_model import OnnxModel
    from agent.guard.size import MAX_QUESTION, MAX_RAW_TEXT, QUESTION_TOO_LONG, fit_text
    from agent.guard.thread_quotes import BACKGROUND_HEADING, quote_line, read_quotes, with_background
    from agent.history.changes import AskedComparison, parse_comparison
    from agent.kinds.meanings import AskedMeaning, read_meaning
    from agent.kinds.stored_queries import StoredQuery, run_again, store_queries
    from agent.limits import TokenUsage, TurnLimits
    from agent.llm.chat_model import ping_model
    from agent.llm.models import RetryPolicy, open_models
    from agent.llm.ollama import list_ollama_models, read_context_length
    from agent.llm.providers import Sampling
    from agent.llm.recorded_model import RecordedModels, record_reply
    from agent.lookups.catalogue import LOOKUPS
    from agent.lookups.lookup import Arguments, CodeLookup, Look, Offset, explain_arguments
    from agent.lookups.read_file import read_lines
    from agent.lookups.results import NEXT, FileText, LookupResult, ReadCoverage, describe_coverage, describe_missing
    from agent.persistence.database import Database, DatabaseErrors, Statement
    from agent.persistence.evidence_store import open_memory_store
    from agent.persistence.migrations import (
        Schema,
        create_checkpoint_tables,
        list_copies,
        load_conversation_schema,
        run_statement,
    )
    from agent.persistence.postgres.conversation_copy import (
        ConversationCounts,
        copy_conversations_to_postgres,
        copy_conversations_to_sqlite,
    )
    from agent.persistence.postgres.database import (
        APPLICATION_NAME,
        PoolLoad,
        PostgresDatabase,
        PostgresTransaction,
        connect_postgres,
        explain_postgres_error,
        make_postgres_options,
        open_postgres_database,
    )
    from agent.persistence.postgres.saver import prepare_postgres_conversations
    from agent.persistence.sqlite import SqliteDatabase, open_sqlite
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
    from agent.sandbox.boxes import SandboxTrial, find_sandbox, try_sandboxes
    from agent.sandbox.working_copy import WorkingCopy
    from agent.state import PastTurn
    from agent.tools.web_search import DuckDuckGoSearch, SearxngSearch

__getattr__ = load_lazily(__name__)
