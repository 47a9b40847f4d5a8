"""Slack: everything that knows slack-bolt and slack-sdk stands in this folder, and nowhere else."""
