"""What is kept on disk for one repository: the data folder, the SQLite catalog, the vectors, and the fingerprint."""
