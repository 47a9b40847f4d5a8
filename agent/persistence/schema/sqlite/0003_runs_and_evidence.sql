-- The journal of runs, and the texts of evidence. LangGraph makes the tables of its checkpoints itself.
-- Earlier layouts were made a table at a time, when each was first needed: what is there already stays.

CREATE TABLE IF NOT EXISTS agent_executions (
    id TEXT PRIMARY KEY, thread TEXT NOT NULL, repository TEXT, question TEXT NOT NULL, reply TEXT, reply_to TEXT,
    status TEXT NOT NULL CHECK (status IN ('running', 'paused', 'completed', 'failed')),
    tries INTEGER NOT NULL, started_at REAL NOT NULL, updated_at REAL NOT NULL);

CREATE INDEX IF NOT EXISTS agent_executions_by_thread ON agent_executions (thread);

CREATE TABLE IF NOT EXISTS evidence (
    thread TEXT NOT NULL, key TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (thread, key)) WITHOUT ROWID;
