"""The command line: `covaria COMMAND`."""

from covaria.cli.app import main

__all__ = ["main"]
