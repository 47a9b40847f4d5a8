"""The parts of one turn: the files and the thread around its question, notices, and the reply."""
