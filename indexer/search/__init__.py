"""The hybrid ranking and the in-memory snapshot that it runs on. Pure functions over numpy columns."""
