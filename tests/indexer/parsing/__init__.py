"""Tests of outlines, references and chunks."""
