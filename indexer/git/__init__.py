"""Reads one git repository: commits, trees, blobs, history, attributes, and which files are worth indexing."""
