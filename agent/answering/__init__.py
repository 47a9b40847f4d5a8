"""The answering model with tools: its input, its rounds, and its text."""
