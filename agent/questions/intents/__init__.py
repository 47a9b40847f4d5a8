"""Recognizes the intent of a question with a linear model trained on example lines."""
