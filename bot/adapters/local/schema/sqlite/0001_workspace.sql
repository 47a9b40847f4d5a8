-- The messages of the workspace and the files attached to them. A version counts up over all messages with each change.

CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, channel TEXT NOT NULL, thread INTEGER NOT NULL, author TEXT NOT NULL,
    reader TEXT NOT NULL, text TEXT NOT NULL, content TEXT NOT NULL, files TEXT NOT NULL, reactions TEXT NOT NULL,
    nonce TEXT NOT NULL, at REAL NOT NULL, edited_at REAL NOT NULL, is_deleted INTEGER NOT NULL, version INTEGER NOT NULL);
CREATE INDEX messages_by_thread ON messages (channel, thread, id);
CREATE INDEX messages_by_version ON messages (version);
CREATE TABLE files (id INTEGER PRIMARY KEY, message INTEGER NOT NULL, content BLOB NOT NULL);
