"""Conversations in Postgres: connections, their errors, the checkpointer, and moving there and back."""
