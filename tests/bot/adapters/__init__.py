"""Tests of the adapters, one technology per folder."""
