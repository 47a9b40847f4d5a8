"""Tests of the chat side's database and of its data folder."""
