-- Which generation of each repository's index is served, and who keeps which from being swept, until when.

CREATE TABLE cluster (place INTEGER PRIMARY KEY CHECK (place = 1), id TEXT NOT NULL);

CREATE TABLE manifests (
    repository TEXT NOT NULL, version BIGINT NOT NULL, publication TEXT NOT NULL, listing TEXT NOT NULL,
    provenance TEXT NOT NULL, status TEXT NOT NULL, PRIMARY KEY (repository, version));

CREATE TABLE manifest_pins (
    holder TEXT PRIMARY KEY, repository TEXT NOT NULL, version BIGINT NOT NULL, until DOUBLE PRECISION NOT NULL);
CREATE INDEX manifest_pins_by_repository ON manifest_pins (repository);
