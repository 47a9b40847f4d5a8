"""Tests of the terminal as a place to talk."""
