"""Tests of `indexer/diffs`."""
