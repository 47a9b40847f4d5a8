"""Tests of answers: what is quoted, how it is laid out, and whether every citation holds."""
