-- Which run may write in a conversation (run_claims.py), and when it last did; one without a row nobody may.

CREATE TABLE run_tokens (thread_id TEXT PRIMARY KEY, token TEXT NOT NULL, used_at REAL NOT NULL);
