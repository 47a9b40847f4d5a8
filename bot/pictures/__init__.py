"""Graphs laid out in layers, and drawn as a PNG or an SVG: pure functions."""
