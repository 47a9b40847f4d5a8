"""The storage of one repository on disk: the data folder, the SQLite catalog, the vectors, and the fingerprint."""
