-- The newest claim of a conversation, the checkpoint thread that is read (evidence_store.py; none before the first
-- claim: its own), and when a run has last used it. The numbers of claims never come back.

CREATE TABLE conversations (
    thread TEXT PRIMARY KEY, claim BIGINT NOT NULL, checkpoints TEXT, used_at DOUBLE PRECISION NOT NULL);

INSERT INTO conversations (thread, claim, used_at) SELECT thread_id, 0, used_at FROM run_tokens;

DROP TABLE run_tokens;

CREATE TABLE claims (newest BIGINT NOT NULL);

INSERT INTO claims (newest) VALUES (0);
