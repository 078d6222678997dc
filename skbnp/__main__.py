"""``python -m skbnp``: the command line."""

import sys

from skbnp.command_line import main

if __name__ == "__main__":
    sys.exit(main())
