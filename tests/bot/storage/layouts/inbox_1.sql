BEGIN TRANSACTION;
CREATE TABLE asked_back (
    run_id TEXT PRIMARY KEY, conversation TEXT NOT NULL, author TEXT NOT NULL, question TEXT NOT NULL,
    names TEXT NOT NULL, at REAL NOT NULL);
INSERT INTO "asked_back" VALUES('a255dd32256b468b8e3061d7e3a24fcc','c:1','U1ANN','where is send?','["shop", "till"]',1000000.0);
CREATE TABLE feedback (
    run_id TEXT NOT NULL, person TEXT NOT NULL, opinion TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (run_id, person));
INSERT INTO "feedback" VALUES('59836fb99c214d03b3105a3bbb8dfd68','U1ANN','good',1000000.0);
CREATE TABLE inbox (
    id INTEGER PRIMARY KEY, platform TEXT NOT NULL, workspace TEXT NOT NULL, channel TEXT NOT NULL,
    message TEXT NOT NULL, conversation TEXT NOT NULL, body TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('received', 'running', 'done', 'closed', 'withdrawn')),
    run_id TEXT NOT NULL, handles TEXT NOT NULL DEFAULT '[]', tries INTEGER NOT NULL DEFAULT 0,
    claims INTEGER NOT NULL DEFAULT 0,
    owner TEXT NOT NULL DEFAULT '', lease_until REAL NOT NULL DEFAULT 0, stop INTEGER NOT NULL DEFAULT 0,
    received_at REAL NOT NULL, updated_at REAL NOT NULL, deaths INTEGER NOT NULL DEFAULT 0, under_way INTEGER NOT NULL DEFAULT 0,
    UNIQUE (platform, workspace, channel, message));
INSERT INTO "inbox" VALUES(1,'fake','W','C','1','c:1','{"place": {"platform": "fake", "workspace": "W", "channel": "C", "thread": "1", "line": ""}, "id": "1", "author": "ann", "text": "where is send?", "kind": "mention", "sent_at": 1000.0, "author_name": "Ann", "roles": [], "private": false, "in_thread": false, "external": false, "mentions_others": false, "about": [], "oversize": 0}','received','a255dd32256b468b8e3061d7e3a24fcc','[]',0,0,'',0.0,0,1000000.0,1000000.0,0,0);
INSERT INTO "inbox" VALUES(2,'fake','W','C','2','c:2','{"place": {"platform": "fake", "workspace": "W", "channel": "C", "thread": "1", "line": ""}, "id": "2", "author": "ann", "text": "who calls it?", "kind": "mention", "sent_at": 1000.0, "author_name": "Ann", "roles": [], "private": false, "in_thread": false, "external": false, "mentions_others": false, "about": [], "oversize": 0}','running','ddc1914f986d432380550d8b4ac04487','[{"platform": "fake", "workspace": "W", "channel": "C", "id": "9.2", "thread": "1"}]',2,2,'host/1/0000',1000030.0,0,1000000.0,1000000.0,1,1);
INSERT INTO "inbox" VALUES(3,'fake','W','C','3','c:3','{"place":{"platform":"fake","workspace":"W","channel":"C","thread":"1","line":""},"id":"3","author":"ann","text":"","kind":"mention","sent_at":1000.0,"author_name":"Ann","roles":[],"private":false,"in_thread":false,"external":false,"mentions_others":false,"about":[],"oversize":0}','done','59836fb99c214d03b3105a3bbb8dfd68','[{"platform": "fake", "workspace": "W", "channel": "C", "id": "9.3", "thread": "1"}]',1,1,'',1000030.0,0,1000000.0,1000000.0,0,1);
CREATE TABLE pulse (id INTEGER PRIMARY KEY, at REAL NOT NULL);
INSERT INTO "pulse" VALUES(1,1000000.0);
CREATE TABLE routes (
    run_id TEXT PRIMARY KEY, conversation TEXT NOT NULL, route TEXT NOT NULL, at REAL NOT NULL);
INSERT INTO "routes" VALUES('ddc1914f986d432380550d8b4ac04487','c:2','{"repositories": ["shop", "till"], "why": "named", "question": "", "remark": "", "decides": true}',1000000.0);
CREATE TABLE threads (
    key TEXT PRIMARY KEY, conversation TEXT NOT NULL, takes_part INTEGER NOT NULL DEFAULT 0,
    muted INTEGER NOT NULL DEFAULT 0, repository TEXT, people TEXT NOT NULL DEFAULT '[]', last_at REAL NOT NULL);
INSERT INTO "threads" VALUES('fake:W:C:1','fake:W:C:1',1,1,'shop','["ann"]',1000000.0);
INSERT INTO "threads" VALUES('fake:W:C:','fake:W:C:',0,0,'shop','[]',0.0);
CREATE TABLE topics (
    conversation TEXT PRIMARY KEY, repository TEXT NOT NULL, at REAL NOT NULL);
INSERT INTO "topics" VALUES('c:3','shop',1000000.0);
CREATE TABLE turns (
    run_id TEXT PRIMARY KEY, conversation TEXT NOT NULL, record TEXT NOT NULL, at REAL NOT NULL);
INSERT INTO "turns" VALUES('59836fb99c214d03b3105a3bbb8dfd68','c:3','{"repository": "shop", "commit": "abc", "route": "fast_path", "model": null, "seconds": 1.5, "files": ["a.py"], "searched": [], "model_calls": 0, "input_tokens": 0, "output_tokens": 0, "person": "U1ANN", "why": "", "repositories": [], "watched": false, "flagged": 0, "tools": []}',1000000.0);
CREATE TABLE usage (
    person TEXT NOT NULL, period TEXT NOT NULL, ends REAL NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (person, period));
INSERT INTO "usage" VALUES('fake:W:ann','60:16666',1000020.0,1);
INSERT INTO "usage" VALUES('fake:W:ann','86400:11',1036800.0,1);
CREATE INDEX inbox_by_state ON inbox (state, conversation);
CREATE INDEX turns_by_conversation ON turns (conversation, at);
COMMIT;
PRAGMA user_version = 1;
