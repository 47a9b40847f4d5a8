"""Fetches what a question needs from the code: searches, lookups, and the surroundings of what was found."""
