"""Tests of the nodes of the graph, one at a time."""
