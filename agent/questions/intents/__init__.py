"""Tells what a question wants by a linear model that is fitted to example lines."""
