"""Looks after the data folder: backup and restore, disk usage, retention."""
