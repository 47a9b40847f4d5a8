"""Other branches, tags, commits and pull requests of a repository: which are named, and their generations."""
