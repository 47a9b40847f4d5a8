"""Writes an answer without a model: quoted code, marks, and the citations behind them."""
