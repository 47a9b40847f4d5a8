"""Parses files in separate processes, which a file may slow down, fill or end without harm to this one."""
