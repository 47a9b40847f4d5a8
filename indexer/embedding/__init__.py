"""Turns text into vectors: the port, the bundled static model, LangChain embedders, and the choice by name."""
