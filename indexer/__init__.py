"""Knows the code: from a commit to a searchable generation, and the face that others read it through."""
