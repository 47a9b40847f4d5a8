"""Runs: what is known of one, what takes it through the graph, and the answer that it comes to."""
