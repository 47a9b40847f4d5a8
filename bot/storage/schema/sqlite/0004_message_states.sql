-- The states of a message that has a run, and of one that waits for a person. A constraint cannot be changed, so the table
-- is made anew; of what was `running`, a run may have begun.

ALTER TABLE inbox RENAME TO earlier_inbox;

CREATE TABLE inbox (
    id INTEGER PRIMARY KEY, platform TEXT NOT NULL, workspace TEXT NOT NULL, channel TEXT NOT NULL,
    message TEXT NOT NULL, conversation TEXT NOT NULL, body TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN
        ('received', 'claimed', 'running', 'paused', 'settled', 'closed', 'withdrawn')),
    run_id TEXT NOT NULL, handles TEXT NOT NULL DEFAULT '[]', tries INTEGER NOT NULL DEFAULT 0,
    claims INTEGER NOT NULL DEFAULT 0,
    owner TEXT NOT NULL DEFAULT '', lease_until REAL NOT NULL DEFAULT 0, stop INTEGER NOT NULL DEFAULT 0,
    received_at REAL NOT NULL, updated_at REAL NOT NULL,
    deaths INTEGER NOT NULL DEFAULT 0, under_way INTEGER NOT NULL DEFAULT 0,
    UNIQUE (platform, workspace, channel, message));

-- What asked a person something waits for the answer: a choice that nobody has made, or the newest turn of its
-- conversation where that is a question back or a request for approval.
INSERT INTO inbox
    SELECT id, platform, workspace, channel, message, conversation, body,
        CASE
            WHEN state <> 'done' THEN state
            WHEN EXISTS (SELECT 1 FROM asked_back WHERE asked_back.run_id = earlier_inbox.run_id)
                OR EXISTS (SELECT 1 FROM turns WHERE turns.run_id = earlier_inbox.run_id
                    AND json_extract(turns.record, '$.route') = 'paused'
                    AND NOT EXISTS (SELECT 1 FROM turns later
                        WHERE later.conversation = turns.conversation AND later.at > turns.at))
            THEN 'paused'
            ELSE 'settled'
        END,
        run_id, handles, tries, claims, owner, lease_until, stop, received_at, updated_at, deaths, under_way
    FROM earlier_inbox;

DROP TABLE earlier_inbox;

CREATE INDEX inbox_by_state ON inbox (state, conversation);
