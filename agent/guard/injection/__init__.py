"""Detects prompt injection: normal forms of a text, the families of attacks, and a verdict. Pure functions."""
