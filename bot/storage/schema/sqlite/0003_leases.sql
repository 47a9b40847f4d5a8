-- What one process does for all, under its name: who does it, by which token, and until when.
CREATE TABLE IF NOT EXISTS leases (
    name TEXT PRIMARY KEY, owner TEXT NOT NULL, token INTEGER NOT NULL, lease_until REAL NOT NULL);

-- When this machine came up, as its clock said at the first start of citebot since; `boot` is the system's name for that.
CREATE TABLE IF NOT EXISTS uptimes (boot TEXT PRIMARY KEY, began REAL NOT NULL);
