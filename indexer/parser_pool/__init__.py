"""Parses files in processes of their own, which a file may slow down, fill or end without harm to this one."""
