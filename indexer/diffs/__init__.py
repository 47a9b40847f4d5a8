"""Differences between two commits: their common ancestor, the changed files, and the changed lines."""
