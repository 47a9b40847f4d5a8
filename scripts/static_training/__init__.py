"""Trains the word vectors of the static embedder: sources, pairs, bags of words, the objective, and the table."""
