"""What the fixture ``run`` is: the command as a function of its arguments."""

from __future__ import annotations

from collections.abc import Callable

from typer.testing import CliRunner, Result

from penstock.cli.main import app

Run = Callable[..., Result]


def run_command(*arguments: object, input: str = "") -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=input)
