"""Tests of what operators see of the process."""
