-- Which branches, tags and pull requests each repository has, for processes that answer and do not have it.

CREATE TABLE listed_refs (repository TEXT PRIMARY KEY, refs TEXT NOT NULL);
