"""Changes of nests that passes are made of."""
