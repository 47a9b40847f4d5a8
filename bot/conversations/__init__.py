"""From a stored message to a settled reply: dispatching, commands, answering, queueing, and following runs."""
