-- What became of refreshes that were asked for: those who follow one are on other machines than who carries it out.

CREATE TABLE refreshes (
    ticket BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY, repository TEXT NOT NULL, progress TEXT, report TEXT,
    failure TEXT, asked_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp());
CREATE INDEX refreshes_by_repository ON refreshes (repository, ticket);
