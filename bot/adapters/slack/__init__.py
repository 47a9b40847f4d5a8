"""Slack: the only folder that knows slack-bolt and slack-sdk."""
