"""Ahead of time: programs as files, for chips that need not be here."""
