"""Tests of fetching evidence from the code."""
