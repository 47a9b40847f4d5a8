"""Differences between two commits: their common ancestor, the files that differ, and the changed lines."""
