"""Fails the way that plugins fail: a library that it needs is of another version."""

raise ImportError("libfrob.so.7: cannot open shared object file")
