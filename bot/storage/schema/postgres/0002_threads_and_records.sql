-- The tables of the chat side that Postgres may hold, as in SQLite. `rowid` orders what came within one moment.

CREATE TABLE threads (
    key TEXT PRIMARY KEY, conversation TEXT NOT NULL, takes_part INTEGER NOT NULL DEFAULT 0,
    muted INTEGER NOT NULL DEFAULT 0, repository TEXT, people TEXT NOT NULL DEFAULT '[]',
    last_at DOUBLE PRECISION NOT NULL);

CREATE TABLE usage (
    person TEXT NOT NULL, period TEXT NOT NULL, ends DOUBLE PRECISION NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (person, period));

CREATE TABLE turns (
    run_id TEXT PRIMARY KEY, conversation TEXT NOT NULL, record TEXT NOT NULL, at DOUBLE PRECISION NOT NULL,
    rowid BIGINT GENERATED ALWAYS AS IDENTITY);
CREATE INDEX turns_by_conversation ON turns (conversation, at);

CREATE TABLE feedback (
    run_id TEXT NOT NULL, person TEXT NOT NULL, opinion TEXT NOT NULL, at DOUBLE PRECISION NOT NULL,
    rowid BIGINT GENERATED ALWAYS AS IDENTITY, PRIMARY KEY (run_id, person));
