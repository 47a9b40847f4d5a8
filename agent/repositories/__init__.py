"""Several repositories in one question: read as one, each in a folder of its own, every place with its repository."""
