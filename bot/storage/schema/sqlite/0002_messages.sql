-- All tables of the chat side. The first layout was made a table and a column at a time, when each was first needed:
-- what is there already stays.

-- Every message, from before it is acknowledged until it is forgotten. `deaths` counts the processes that died while it
-- was under way in them, and `under_way` says whether it is.
CREATE TABLE IF NOT EXISTS inbox (
    id INTEGER PRIMARY KEY, platform TEXT NOT NULL, workspace TEXT NOT NULL, channel TEXT NOT NULL,
    message TEXT NOT NULL, conversation TEXT NOT NULL, body TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('received', 'running', 'done', 'closed', 'withdrawn')),
    run_id TEXT NOT NULL, handles TEXT NOT NULL DEFAULT '[]', tries INTEGER NOT NULL DEFAULT 0,
    claims INTEGER NOT NULL DEFAULT 0,
    owner TEXT NOT NULL DEFAULT '', lease_until REAL NOT NULL DEFAULT 0, stop INTEGER NOT NULL DEFAULT 0,
    received_at REAL NOT NULL, updated_at REAL NOT NULL,
    UNIQUE (platform, workspace, channel, message));
ALTER TABLE inbox ADD COLUMN IF NOT EXISTS deaths INTEGER NOT NULL DEFAULT 0;
ALTER TABLE inbox ADD COLUMN IF NOT EXISTS under_way INTEGER NOT NULL DEFAULT 0;
CREATE INDEX IF NOT EXISTS inbox_by_state ON inbox (state, conversation);

-- One row that means nothing: it is written to find out whether anything can be.
CREATE TABLE IF NOT EXISTS pulse (id INTEGER PRIMARY KEY, at REAL NOT NULL);

-- Whether citebot takes part in a thread, is muted there, and which repository is in use.
CREATE TABLE IF NOT EXISTS threads (
    key TEXT PRIMARY KEY, conversation TEXT NOT NULL, takes_part INTEGER NOT NULL DEFAULT 0,
    muted INTEGER NOT NULL DEFAULT 0, repository TEXT, people TEXT NOT NULL DEFAULT '[]', last_at REAL NOT NULL);

-- How much each person has asked in a minute and in a day.
CREATE TABLE IF NOT EXISTS usage (
    person TEXT NOT NULL, period TEXT NOT NULL, ends REAL NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (person, period));

-- The record of each answer, and what people thought of it.
CREATE TABLE IF NOT EXISTS turns (
    run_id TEXT PRIMARY KEY, conversation TEXT NOT NULL, record TEXT NOT NULL, at REAL NOT NULL);
CREATE INDEX IF NOT EXISTS turns_by_conversation ON turns (conversation, at);
CREATE TABLE IF NOT EXISTS feedback (
    run_id TEXT NOT NULL, person TEXT NOT NULL, opinion TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (run_id, person));

-- Which repository a conversation is about, how turns were routed, and which questions wait for a choice.
CREATE TABLE IF NOT EXISTS topics (
    conversation TEXT PRIMARY KEY, repository TEXT NOT NULL, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS routes (
    run_id TEXT PRIMARY KEY, conversation TEXT NOT NULL, route TEXT NOT NULL, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS asked_back (
    run_id TEXT PRIMARY KEY, conversation TEXT NOT NULL, author TEXT NOT NULL, question TEXT NOT NULL,
    names TEXT NOT NULL, at REAL NOT NULL);
