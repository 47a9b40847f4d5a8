"""Slack: everything that knows slack-bolt and slack-sdk is in this folder, and nowhere else."""
