"""From a stored message to a settled reply: `dispatcher` stores and orders messages, `turn` is the life of one."""
