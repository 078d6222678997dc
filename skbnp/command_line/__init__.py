"""The command ``skbnp``: a module for each of its commands, and what they share."""

from skbnp.command_line._main import main

__all__ = ["main"]
