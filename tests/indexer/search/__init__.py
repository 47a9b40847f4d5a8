"""Tests of the ranking and of the snapshot that it runs on."""
