-- How much an answer counts, and the links that follow its moved lines. `watch` is 1 while its asker wants to be told of a
-- change, and 2 once that was said; `pinned` is 1 where people have pinned it; `shared` are the messages in which
-- everybody sees it; `links` are new addresses by former ones, shown at `linked_at` (`due` 3, 4 while they are).
ALTER TABLE living_answers ADD COLUMN watch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE living_answers ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE living_answers ADD COLUMN shared TEXT NOT NULL DEFAULT '[]';
ALTER TABLE living_answers ADD COLUMN links TEXT NOT NULL DEFAULT '{}';
ALTER TABLE living_answers ADD COLUMN linked_at DOUBLE PRECISION NOT NULL DEFAULT 0;
