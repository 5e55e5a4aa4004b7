"""The command: arguments in, tables, trees and JSON out. What it does, it does through the facade."""

import sys


def run() -> None:
    """The entry point. It loads the rest only here, so that Ctrl-C meanwhile is one word, too."""
    try:
        from penstock.cli.main import main

        main()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
