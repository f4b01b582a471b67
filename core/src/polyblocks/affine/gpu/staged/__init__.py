"""Products whose copies, waits and multiplications are nodes of the nest."""
