"""Tests of the conversation database."""
