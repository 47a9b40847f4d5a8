-- Answers that are given again to the same question: digests of what it means and of what it was read from, and the
-- answer with its evidence, as JSON. All are empty where an answer is not to be given again.
ALTER TABLE answer_records ADD COLUMN meaning TEXT NOT NULL DEFAULT '';
ALTER TABLE answer_records ADD COLUMN place TEXT NOT NULL DEFAULT '';
ALTER TABLE answer_records ADD COLUMN answer TEXT NOT NULL DEFAULT '';

CREATE INDEX answer_records_by_meaning ON answer_records (meaning, place);
