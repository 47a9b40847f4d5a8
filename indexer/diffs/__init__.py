"""What differs between two commits: how they belong together, which files differ, and the lines that do."""
