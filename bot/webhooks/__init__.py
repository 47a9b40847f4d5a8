"""Push webhooks: whether a host really sent one, what was pushed, and to which repository."""
