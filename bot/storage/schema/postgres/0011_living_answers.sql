-- Answers that are followed through pushes: each as it was sent, the lines that it cites with their place at a later
-- commit, and the lookups that it rests on. `id` begins the runs of one message, `due` says whether what it shows is to
-- be changed (1) or is being changed (2), and `at_commit` is empty where lines are at the commit that is followed.
CREATE TABLE living_answers (
    id TEXT PRIMARY KEY, run_id TEXT NOT NULL, entry BIGINT NOT NULL, conversation TEXT NOT NULL,
    content TEXT NOT NULL, question TEXT NOT NULL, commits TEXT NOT NULL, at DOUBLE PRECISION NOT NULL,
    since TEXT NOT NULL DEFAULT '', changes TEXT NOT NULL DEFAULT '[]', due INTEGER NOT NULL DEFAULT 0,
    edited_at DOUBLE PRECISION NOT NULL DEFAULT 0);
CREATE INDEX living_answers_due ON living_answers (due);
CREATE INDEX living_answers_edited ON living_answers (edited_at);
CREATE TABLE cited_places (
    id TEXT NOT NULL, mark INTEGER NOT NULL, repository TEXT NOT NULL, cited TEXT NOT NULL, at_commit TEXT NOT NULL,
    path TEXT NOT NULL, start_line INTEGER NOT NULL, end_line INTEGER NOT NULL, fate TEXT NOT NULL DEFAULT 'same',
    PRIMARY KEY (id, mark));
CREATE INDEX cited_places_by_path ON cited_places (repository, at_commit, path);
CREATE TABLE stored_queries (
    id TEXT NOT NULL, number INTEGER NOT NULL, repository TEXT NOT NULL, name TEXT NOT NULL, query TEXT NOT NULL,
    difference TEXT NOT NULL DEFAULT '', PRIMARY KEY (id, number));
CREATE INDEX stored_queries_by_name ON stored_queries (repository, name);
CREATE TABLE followed_commits (repository TEXT PRIMARY KEY, sha TEXT NOT NULL);
