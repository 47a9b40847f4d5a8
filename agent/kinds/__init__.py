"""What the kinds of question want that have answers of their own: commands, folders, an overview, an explanation."""
