-- The texts of evidence. LangGraph makes the tables of its checkpoints itself.

CREATE TABLE evidence (
    thread TEXT NOT NULL, key TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (thread, key));
