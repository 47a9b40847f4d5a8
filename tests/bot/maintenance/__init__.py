"""Tests of backup, restore and retention."""
