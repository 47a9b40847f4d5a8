"""Conversations in Postgres: connections, what can be wrong with them, the checkpointer, and moving there and back."""
