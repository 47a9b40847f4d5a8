"""Answers one question: a guarded graph from the question to a checked, cited answer."""
