"""A question on its way to its answer, for any asker: the run, the queue, and sentences about both."""
