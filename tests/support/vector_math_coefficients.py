"""Derives the polynomials of polyblocks.codegen.vector_math and writes its coefficients.py.

Each one is the minimax approximation of one function on one interval (vector_math_polynomials) or
on each of 16 (vector_math_pieces), rounded to the working precision (float32: to the best
combination nearby). Fixed leading terms (the 1 and r of exp, the x of sin) are not part of the
table; its polynomial multiplies the remaining power.

    python tests/support/vector_math_coefficients.py          # prints the achieved errors
    python tests/support/vector_math_coefficients.py --write  # and rewrites coefficients.py
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mpmath import mp, mpf
from vector_math_pieces import TABLES
from vector_math_polynomials import SPECS
from vector_math_remez import polished, remez

TARGET = (
    Path(__file__).resolve().parents[2] / "core/src/polyblocks/codegen/vector_math/coefficients.py"
)


def coefficients_file() -> tuple[str, list[str]]:
    """The text of coefficients.py, and one line about each polynomial."""
    lines = [
        '"""Polynomial coefficients, lowest power first. Generated, do not edit.',
        "",
        "Written by tests/support/vector_math_coefficients.py (Remez exchange, 60 digits).",
        '"""',
        "",
    ]
    report = []
    for spec in SPECS:
        coefficients, error = remez(spec)
        bits = _bits(error)
        report.append(f"{spec.name:16s} degree {spec.degree:2d}  error 2^-{bits:.1f}")
        low, high = mp.nstr(spec.low, 6), mp.nstr(spec.high, 6)
        lines.append(f"# {spec.about}; [{low}, {high}], error 2^-{bits:.1f}.")
        lines.append(f"{spec.name} = (")
        lines.extend(f"    {value!r}," for value in polished(spec, coefficients))
        lines.append(")")
        lines.append("")
    for entry in TABLES:
        rows, error = entry.rows()
        bits = _bits(error)
        report.append(f"{entry.name:16s} degree {entry.degree:2d}  error 2^-{bits:.1f}")
        lines.append(f"# {entry.about} by pieces: values, coefficients; error 2^-{bits:.1f}.")
        lines.append(f"{entry.name} = (")
        for row in rows:
            lines.extend(["    (", *(f"        {value!r}," for value in row), "    ),"])
        lines.append(")")
        lines.append("")
    return "\n".join(lines[:-1]) + "\n", report


def _bits(error: mpf) -> float:
    return float(-mp.log(error, 2))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="rewrite coefficients.py")
    text, report = coefficients_file()
    print("\n".join(report))
    if parser.parse_args().write:
        TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
