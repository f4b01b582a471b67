"""What targets have in common: the choice of one, descriptions of GPUs."""
