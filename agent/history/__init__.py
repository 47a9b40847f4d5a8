"""Fetches the commits, people and releases that a question is about."""
