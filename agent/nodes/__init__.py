"""The nodes of the graph, one per module."""
