"""Tests of the call graph."""
