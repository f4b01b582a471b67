"""Instructions of chips, as the passes use them: vectors, conversions, permutations, units."""
