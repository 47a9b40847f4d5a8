"""Surfaces for people and programs without a chat: one core of lookups and questions, and a folder for each."""
