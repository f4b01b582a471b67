"""Code that is needed no more or once only: dead, constant, invariant."""
