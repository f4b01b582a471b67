"""LLVM IR as tokens."""

from __future__ import annotations

import re

from polyblocks.errors import UnsupportedError

_TOKEN = re.compile(
    r"\s*(?:"
    r'(?P<string>c?"[^"]*")'
    r'|(?P<name>[%@](?:"[^"]*"|[-$.\w]+))'
    r"|(?P<metadata>![-$.\w]*|#\d+)"
    r"|(?P<number>0x[HRKLM]?[0-9A-Fa-f]+|-?\d+(?:\.\d*)?(?:e[-+]?\d+)?)"
    r"|(?P<word>[A-Za-z_$.][-$.\w]*)"
    r"|(?P<mark>\.\.\.|[()\[\]{}<>,=*|:])"
    r")"
)


def tokens_of(text: str) -> list[str]:
    """The tokens of some text without comments.

    Raises:
        UnsupportedError: a character that begins no token.
    """
    found, position, text = [], 0, text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise UnsupportedError(
                f"the simulator cannot read this LLVM IR: {text[position:].strip()[:80]}"
            )
        found.append(match[match.lastgroup or 0])
        position = match.end()
    return found


class Cursor:
    """A place in the tokens of one instruction.

    Attributes:
        text: the instruction, for messages.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = tokens_of(text)
        self._at = 0

    @property
    def ahead(self) -> str:
        """The next token; empty at the end."""
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    @property
    def after(self) -> str:
        """The token behind the next one, or an empty string."""
        return self._tokens[self._at + 1] if self._at + 1 < len(self._tokens) else ""

    def take(self) -> str:
        """The next token, which is passed."""
        token = self.ahead
        self._at += 1
        return token

    def accept(self, *tokens: str) -> str:
        """The next token if it is one of these, which is passed; else empty."""
        return self.take() if self.ahead in tokens else ""

    def expect(self, token: str) -> None:
        """Pass one token.

        Raises:
            UnsupportedError: it is another one.
        """
        if self.take() != token:
            raise self.error(f"expected '{token}'")

    def number(self) -> int:
        """The next token, a number."""
        token = self.take()
        if not token.lstrip("-").isdigit():
            raise self.error(f"expected a number, not '{token}'")
        return int(token)

    def skip_group(self) -> None:
        """Pass everything in parentheses, brackets or braces that begins here."""
        depth = 0
        while True:
            token = self.take()
            depth += (token in ("(", "[", "{", "<")) - (token in (")", "]", "}", ">"))
            if depth == 0 or not token:
                return

    def error(self, problem: str) -> UnsupportedError:
        """The error for an instruction that the reader does not support."""
        return UnsupportedError(f"the simulator cannot read this LLVM IR, {problem}: {self.text}")
