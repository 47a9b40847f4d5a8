"""Lets `python -m bot` do what `citebot` does."""

from bot.cli import main

if __name__ == "__main__":
    main()
