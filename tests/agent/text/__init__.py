"""Tests of text functions that know nothing of questions and answers."""
