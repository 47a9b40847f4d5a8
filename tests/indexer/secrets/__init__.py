"""Tests of masking secrets."""
