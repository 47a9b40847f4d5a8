"""Tests of building and reading a generation."""
