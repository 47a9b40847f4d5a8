-- Answers that only their askers have seen; `answer` is empty once it was shown to everybody.

CREATE TABLE shareable_answers (
    run_id TEXT PRIMARY KEY, conversation TEXT NOT NULL, answer TEXT NOT NULL, at DOUBLE PRECISION NOT NULL);
