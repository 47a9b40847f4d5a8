"""Tests of the parser processes."""
