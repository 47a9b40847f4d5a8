"""Discord: everything that knows discord.py stands in this folder, and nowhere else."""
