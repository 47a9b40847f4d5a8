"""Lets `python -m bot` act like `citebot`, and import nothing from the current folder."""

import sys

if not sys.flags.safe_path:  # then Python put that folder first, and it may be the repository that is asked about
    del sys.path[0]
    sys.path.append(__file__.rsplit("/", 2)[0])

from bot.cli.main import main

if __name__ == "__main__":
    main()
