"""Answers that notice changes of their cited code."""
