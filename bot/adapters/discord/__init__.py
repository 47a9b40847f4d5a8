"""Discord: the only folder that knows discord.py."""
