"""Fetches what happened to the code: the commits, the people and the releases that a question is about."""
