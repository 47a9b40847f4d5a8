"""How the conversation database is laid out: LangGraph's tables, the journal of runs, and the evidence."""

from __future__ import annotations

import sqlite3

from agent.persistence import evidence_store, run_store

CONVERSATION_SCHEMA_VERSION = 2


def create_conversation_tables(db: sqlite3.Connection) -> None:
    """Make all tables that a conversation database may have."""
    from langgraph.checkpoint.sqlite import SqliteSaver  # takes a second

    SqliteSaver(db).setup()
    for statement in (*run_store.TABLES, evidence_store.TABLE):
        db.execute(statement)
