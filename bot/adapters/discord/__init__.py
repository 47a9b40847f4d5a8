"""Discord: everything that knows discord.py is in this folder, and nowhere else."""
