"""Reads questions: their words, the code that they name, what they ask for, and what they refer back to."""
