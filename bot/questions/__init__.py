"""A question on its way to its answer, anyone who asks it: the run, the line of questions, and sentences about both."""
