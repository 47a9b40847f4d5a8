BEGIN TRANSACTION;
CREATE TABLE asked_back (
    run_id TEXT PRIMARY KEY, conversation TEXT NOT NULL, author TEXT NOT NULL, question TEXT NOT NULL,
    names TEXT NOT NULL, at REAL NOT NULL);
INSERT INTO "asked_back" VALUES('b227606a87c94afdaf7fa2e5894589ba','c:7','ann','which orders?','["shop", "till"]',1000013.0);
INSERT INTO "asked_back" VALUES('ffd1f85d16794034aeadce9896b44f93','c:1','U1ANN','where is send?','["shop", "till"]',1000014.0);
CREATE TABLE feedback (
    run_id TEXT NOT NULL, person TEXT NOT NULL, opinion TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (run_id, person));
INSERT INTO "feedback" VALUES('c7e34bdc9a4342aa90f77880b521817e','U1ANN','good',1000010.0);
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
INSERT INTO "inbox" VALUES(1,'fake','W','C','1','c:1','{"place": {"platform": "fake", "workspace": "W", "channel": "C", "thread": "1", "line": ""}, "id": "1", "author": "ann", "text": "where is send?", "kind": "mention", "sent_at": 1000.0, "author_name": "Ann", "roles": [], "private": false, "in_thread": false, "external": false, "mentions_others": false, "about": [], "oversize": 0}','received','ffd1f85d16794034aeadce9896b44f93','[]',0,0,'',0.0,0,1000000.0,1000000.0,0,0);
INSERT INTO "inbox" VALUES(2,'fake','W','C','2','c:2','{"place": {"platform": "fake", "workspace": "W", "channel": "C", "thread": "1", "line": ""}, "id": "2", "author": "ann", "text": "who calls it?", "kind": "mention", "sent_at": 1000.0, "author_name": "Ann", "roles": [], "private": false, "in_thread": false, "external": false, "mentions_others": false, "about": [], "oversize": 0}','running','4fcad08113bb4ed4a8c7a3b5cbac6e1a','[{"platform": "fake", "workspace": "W", "channel": "C", "id": "9.2", "thread": "1"}]',1,1,'host/1/0000',1000039.0,0,1000001.0,1000009.0,0,1);
INSERT INTO "inbox" VALUES(3,'fake','W','C','3','c:3','{"place": {"platform": "fake", "workspace": "W", "channel": "C", "thread": "1", "line": ""}, "id": "3", "author": "ann", "text": "", "kind": "mention", "sent_at": 1000.0, "author_name": "Ann", "roles": [], "private": false, "in_thread": false, "external": false, "mentions_others": false, "about": [], "oversize": 0}','settled','c7e34bdc9a4342aa90f77880b521817e','[{"platform": "fake", "workspace": "W", "channel": "C", "id": "9.3", "thread": "1"}]',1,1,'',0.0,0,1000002.0,1000009.0,0,0);
INSERT INTO "inbox" VALUES(4,'fake','W','C','4','c:4','{"place": {"platform": "fake", "workspace": "W", "channel": "C", "thread": "1", "line": ""}, "id": "4", "author": "ann", "text": "", "kind": "mention", "sent_at": 1000.0, "author_name": "Ann", "roles": [], "private": false, "in_thread": false, "external": false, "mentions_others": false, "about": [], "oversize": 0}','paused','a7378afcd5e344688d31793cef692222','[{"platform": "fake", "workspace": "W", "channel": "C", "id": "9.4", "thread": "1"}]',1,1,'',0.0,0,1000003.0,1000010.0,0,0);
INSERT INTO "inbox" VALUES(5,'fake','W','C','5','c:5','{"place": {"platform": "fake", "workspace": "W", "channel": "C", "thread": "1", "line": ""}, "id": "5", "author": "ann", "text": "", "kind": "mention", "sent_at": 1000.0, "author_name": "Ann", "roles": [], "private": false, "in_thread": false, "external": false, "mentions_others": false, "about": [], "oversize": 0}','settled','82e52c377fe34989a5d118cbc86d8f85','[{"platform": "fake", "workspace": "W", "channel": "C", "id": "9.5", "thread": "1"}]',1,1,'',0.0,0,1000004.0,1000011.0,0,0);
INSERT INTO "inbox" VALUES(6,'fake','W','C','6','c:5','{"place": {"platform": "fake", "workspace": "W", "channel": "C", "thread": "1", "line": ""}, "id": "6", "author": "ann", "text": "", "kind": "mention", "sent_at": 1000.0, "author_name": "Ann", "roles": [], "private": false, "in_thread": false, "external": false, "mentions_others": false, "about": [], "oversize": 0}','settled','9b4d4505a3c54feea54ae7c6970cb9c0','[{"platform": "fake", "workspace": "W", "channel": "C", "id": "9.6", "thread": "1"}]',1,1,'',0.0,0,1000005.0,1000012.0,0,0);
INSERT INTO "inbox" VALUES(7,'fake','W','C','7','c:7','{"place": {"platform": "fake", "workspace": "W", "channel": "C", "thread": "1", "line": ""}, "id": "7", "author": "ann", "text": "", "kind": "mention", "sent_at": 1000.0, "author_name": "Ann", "roles": [], "private": false, "in_thread": false, "external": false, "mentions_others": false, "about": [], "oversize": 0}','paused','b227606a87c94afdaf7fa2e5894589ba','[{"platform": "fake", "workspace": "W", "channel": "C", "id": "9.7", "thread": "1"}]',1,1,'',0.0,0,1000006.0,1000013.0,0,0);
INSERT INTO "inbox" VALUES(8,'fake','W','C','8','c:8','{"place": {"platform": "fake", "workspace": "W", "channel": "C", "thread": "1", "line": ""}, "id": "8", "author": "ann", "text": "", "kind": "mention", "sent_at": 1000.0, "author_name": "Ann", "roles": [], "private": false, "in_thread": false, "external": false, "mentions_others": false, "about": [], "oversize": 0}','closed','5200db6153da4cda88fdc5973ffa2053','[{"platform": "fake", "workspace": "W", "channel": "C", "id": "9.8", "thread": "1"}]',1,1,'',0.0,0,1000007.0,1000014.0,0,0);
INSERT INTO "inbox" VALUES(9,'fake','W','C','9','c:9','{"place": {"platform": "fake", "workspace": "W", "channel": "C", "thread": "1", "line": ""}, "id": "9", "author": "ann", "text": "", "kind": "mention", "sent_at": 1000.0, "author_name": "Ann", "roles": [], "private": false, "in_thread": false, "external": false, "mentions_others": false, "about": [], "oversize": 0}','withdrawn','49763a180b714428b4db73b84d34563d','[]',0,0,'',0.0,0,1000008.0,1000015.0,0,0);
CREATE TABLE leases (
    name TEXT PRIMARY KEY, owner TEXT NOT NULL, token INTEGER NOT NULL, lease_until REAL NOT NULL);
INSERT INTO "leases" VALUES('slack','here',1,1000030.0);
CREATE TABLE pulse (id INTEGER PRIMARY KEY, at REAL NOT NULL);
INSERT INTO "pulse" VALUES(1,1000000.0);
CREATE TABLE routes (
    run_id TEXT PRIMARY KEY, conversation TEXT NOT NULL, route TEXT NOT NULL, at REAL NOT NULL);
INSERT INTO "routes" VALUES('4fcad08113bb4ed4a8c7a3b5cbac6e1a','c:2','{"repositories": ["shop", "till"], "why": "named", "question": "", "remark": "", "decides": true}',1000009.0);
CREATE TABLE shareable_answers (
    run_id TEXT PRIMARY KEY, conversation TEXT NOT NULL, answer TEXT NOT NULL, at REAL NOT NULL);
INSERT INTO "shareable_answers" VALUES('run 1','c:1','{}',1000000.0);
CREATE TABLE threads (
    key TEXT PRIMARY KEY, conversation TEXT NOT NULL, takes_part INTEGER NOT NULL DEFAULT 0,
    muted INTEGER NOT NULL DEFAULT 0, repository TEXT, people TEXT NOT NULL DEFAULT '[]', last_at REAL NOT NULL);
INSERT INTO "threads" VALUES('fake:W:C:1','fake:W:C:1',1,1,'shop','["ann"]',1000000.0);
INSERT INTO "threads" VALUES('fake:W:C:','fake:W:C:',0,0,'shop','[]',0.0);
CREATE TABLE topics (
    conversation TEXT PRIMARY KEY, repository TEXT NOT NULL, at REAL NOT NULL);
INSERT INTO "topics" VALUES('c:3','shop',1000010.0);
CREATE TABLE turns (
    run_id TEXT PRIMARY KEY, conversation TEXT NOT NULL, record TEXT NOT NULL, at REAL NOT NULL);
INSERT INTO "turns" VALUES('c7e34bdc9a4342aa90f77880b521817e','c:3','{"repository": "shop", "commit": "abc", "route": "fast_path", "model": null, "seconds": 1.5, "files": ["a.py"], "searched": [], "model_calls": 0, "input_tokens": 0, "output_tokens": 0, "person": "ann", "why": "", "repositories": [], "watched": false, "flagged": 0, "tools": [], "commits": {}}',1000009.0);
INSERT INTO "turns" VALUES('a7378afcd5e344688d31793cef692222','c:4','{"repository": "shop", "commit": "abc", "route": "paused", "model": null, "seconds": 1.5, "files": ["a.py"], "searched": [], "model_calls": 0, "input_tokens": 0, "output_tokens": 0, "person": "ann", "why": "", "repositories": [], "watched": false, "flagged": 0, "tools": [], "commits": {}}',1000010.0);
INSERT INTO "turns" VALUES('82e52c377fe34989a5d118cbc86d8f85','c:5','{"repository": "shop", "commit": "abc", "route": "paused", "model": null, "seconds": 1.5, "files": ["a.py"], "searched": [], "model_calls": 0, "input_tokens": 0, "output_tokens": 0, "person": "ann", "why": "", "repositories": [], "watched": false, "flagged": 0, "tools": [], "commits": {}}',1000011.0);
INSERT INTO "turns" VALUES('9b4d4505a3c54feea54ae7c6970cb9c0','c:5','{"repository": "shop", "commit": "abc", "route": "fast_path", "model": null, "seconds": 1.5, "files": ["a.py"], "searched": [], "model_calls": 0, "input_tokens": 0, "output_tokens": 0, "person": "ann", "why": "", "repositories": [], "watched": false, "flagged": 0, "tools": [], "commits": {}}',1000012.0);
CREATE TABLE uptimes (boot TEXT PRIMARY KEY, began REAL NOT NULL);
INSERT INTO "uptimes" VALUES('a boot',950000.0);
CREATE TABLE usage (
    person TEXT NOT NULL, period TEXT NOT NULL, ends REAL NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (person, period));
INSERT INTO "usage" VALUES('fake:W:ann','60:16666',1000020.0,1);
INSERT INTO "usage" VALUES('fake:W:ann','86400:11',1036800.0,1);
CREATE INDEX turns_by_conversation ON turns (conversation, at);
CREATE INDEX inbox_by_state ON inbox (state, conversation);
COMMIT;
PRAGMA user_version = 5;
