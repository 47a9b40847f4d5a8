"""Tests of chat models at the other end of a network."""
