"""Entry point of `ottla`: argparse for the commands that start a broker, typer for the tools.

A broker must start in a fraction of a second, and importing typer and rich takes a third of one. So
the commands that start a broker are parsed by argparse, and typer is imported only for the others.
"""

import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from ottla import __version__

LIGHT_COMMANDS: Final = ("up", "start", "format")


def main() -> None:
    if not __debug__:
        # Asserts protect the data on disk; Python drops them under -O.
        sys.exit("ottla: does not run under python -O or PYTHONOPTIMIZE: its checks would be off.")
    arguments = sys.argv[1:]
    if arguments and arguments[0] in LIGHT_COMMANDS:
        gc.disable()  # Imports leave no garbage; a long-running command enables it again.
        sys.exit(run_light(arguments[0], arguments[1:]))
    if arguments in (["--version"], ["-V"]):
        print(f"ottla {__version__}")
        return
    from ottla.cli.app import app

    app(prog_name="ottla")


def run_light(command: str, arguments: Sequence[str]) -> int:
    """Run a command without typer; returns the exit status."""
    from ottla.broker.settings.error import SettingsError

    try:
        import_module(f"ottla.cli.commands.{command}").main(arguments)
    except SettingsError as error:
        return reported(str(error))
    except KeyboardInterrupt:
        return 130
    return 0


def reported(sentence: str) -> int:
    from ottla.broker.node.log_lines import spelled_out

    print(f"ottla: {spelled_out(sentence)}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    main()
