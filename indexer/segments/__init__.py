"""Shares generations between machines: one indexer publishes them in an object store, every answerer serves them."""
