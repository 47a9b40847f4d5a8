-- Answers of the page that can be opened by a link, each with its question.

CREATE TABLE shared_answers (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, question TEXT NOT NULL, answer TEXT NOT NULL, at DOUBLE PRECISION NOT NULL);
