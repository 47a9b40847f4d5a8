"""Tests of the Slack adapter, over the fake Slack."""
