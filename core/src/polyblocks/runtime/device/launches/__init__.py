"""How launches reach a driver: in a loop of machine code, and as graphs."""
