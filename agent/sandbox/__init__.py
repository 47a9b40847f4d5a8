"""Runs a repository's commands without harm, and reads back their changes."""
