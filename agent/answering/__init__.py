"""The model that answers with tools: what it begins with, its rounds, and the text that it writes."""
