"""Tests of what models are told, and of what is let through of their text."""
