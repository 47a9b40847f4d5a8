"""Tests of the tools that a model may call."""
