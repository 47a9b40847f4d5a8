"""The layout of the conversation database: LangGraph's tables, and the evidence."""

from __future__ import annotations

import sqlite3

from agent.persistence.migrations import Schema


def load_conversation_schema() -> Schema:
    """Return the layout of the tables beside those of LangGraph."""
    return Schema.load("conversation", "agent.persistence")


def create_checkpoint_tables(db: sqlite3.Connection) -> None:
    """Make the tables that LangGraph keeps its checkpoints in."""
    from langgraph.checkpoint.sqlite import SqliteSaver  # takes a second

    SqliteSaver(db).setup()
