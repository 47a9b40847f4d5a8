"""Tests of replies that grow."""
