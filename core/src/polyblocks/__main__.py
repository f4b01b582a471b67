"""The command ``polyblocks``, or what it lacks; also ``python -m polyblocks``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command; without the packages for it say how to install them, exit status 1."""
    try:
        from polyblocks.cli import main as command
    except ModuleNotFoundError as error:
        if (error.name or "polyblocks").partition(".")[0] == "polyblocks":
            raise
        print(
            f"error: the command polyblocks needs what is not installed ({error}); pip install "
            "'polyblocks-compiler[compile]'",
            file=sys.stderr,
        )
        sys.exit(1)
    command()


if __name__ == "__main__":
    main()
