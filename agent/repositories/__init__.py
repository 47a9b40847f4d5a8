"""Several repositories in one question: joined code with a folder for each."""
