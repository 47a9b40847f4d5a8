"""Reads questions: their words, the code that they name, their intent, and their references to earlier turns."""
