"""Surfaces for people and programs beside chats: one core of lookups and questions, and a folder for each."""
