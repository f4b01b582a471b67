"""Code that targets share: the choice of one, descriptions of GPUs."""
