"""Runs commands of a repository where they can harm nothing, and reads back what they changed."""
