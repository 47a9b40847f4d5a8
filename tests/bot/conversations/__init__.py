"""Tests of conversations, from a stored message to a settled reply."""
