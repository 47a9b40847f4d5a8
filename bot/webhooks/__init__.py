"""Push webhooks: their authenticity, the pushed branch, and the repository."""
