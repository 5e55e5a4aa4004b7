"""The command: arguments in, tables, trees and JSON out. What it does, it does through the facade."""

import gc
import sys

_SELDOM = 100_000
"""New objects until Python looks for garbage: what a short command loads stays, and looking takes a tenth of it."""


def run() -> None:
    """The entry point. It loads the rest only here, so that Ctrl-C meanwhile is one word, too."""
    try:
        gc.set_threshold(_SELDOM)
        from penstock.cli.main import main

        main()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    finally:
        gc.freeze()  # at its end Python would look through all that was loaded once more: a sixth of a short command
