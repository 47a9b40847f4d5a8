"""Tests of the Discord adapter, over the fake Discord."""
