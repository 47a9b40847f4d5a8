"""Tests of other branches, tags, commits and pull requests."""
