"""Reads one git repository: commits, trees, blobs, history, attributes, and the files worth indexing."""
