"""A question on its way to its answer, whoever asks it: the run, the line of questions, and sentences about both."""
