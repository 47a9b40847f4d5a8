"""Tests of Markdown that is safe to show."""
