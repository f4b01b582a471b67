"""Short tables, of which lanes get what they look up by permutations of registers."""
