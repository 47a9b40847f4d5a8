-- What an answer was derived from, as JSON, so that it can be derived again.

CREATE TABLE answer_records (
    run_id TEXT PRIMARY KEY, conversation TEXT NOT NULL, record TEXT NOT NULL, at REAL NOT NULL);

CREATE INDEX answer_records_by_time ON answer_records (at);
