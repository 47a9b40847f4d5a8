"""Fetches evidence from the code: searches, lookups, and the surroundings of hits."""
