"""Tests of reading questions."""
