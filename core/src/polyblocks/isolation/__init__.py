"""Compilation in a forked process, which native code may bring down."""
