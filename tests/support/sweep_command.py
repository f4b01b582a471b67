"""The command line that the sweeps over a framework's operations share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path


def parsed(
    description: str | None,
    what: str = "entries",
    *,
    verbose: str = "print what did not compile",
    more: Callable[[argparse.ArgumentParser], object] = lambda parser: None,
) -> argparse.Namespace:
    """Read the command line.

    Args:
        description: of the sweep.
        what: what is named on it.
        verbose: what ``--verbose`` prints.
        more: adds options of one sweep.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("entries", nargs="*", help=f"names of {what}; default: all")
    more(parser)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", type=Path, help="file for the outcome of every sample")
    parser.add_argument(
        "--resume",
        action="store_true",
        help=f"keep the outcomes in the JSON file; only {what} that are named or missing run",
    )
    parser.add_argument("--verbose", action="store_true", help=verbose)
    arguments = parser.parse_args()
    if arguments.resume and not arguments.json:
        parser.error("--resume needs --json FILE")
    return arguments
