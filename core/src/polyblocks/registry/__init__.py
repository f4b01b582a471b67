"""Which plugins there are, and which one is asked for."""
