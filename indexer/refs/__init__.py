"""Other branches, tags, commits and pull requests of a repository, and their generations."""
