"""Tests of push webhooks."""
