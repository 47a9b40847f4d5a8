"""Tests of reading one git repository."""
