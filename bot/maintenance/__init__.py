"""Maintains the data folder: backup and restore, disk usage, retention."""
