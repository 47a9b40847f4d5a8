"""Tests of serving a team."""
