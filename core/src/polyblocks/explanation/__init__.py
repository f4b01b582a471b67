"""``polyblocks explain``: what was compiled, why so, and how fast it runs."""
