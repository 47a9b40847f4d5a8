"""Runs: their records, their way through the graph, and their answers."""
