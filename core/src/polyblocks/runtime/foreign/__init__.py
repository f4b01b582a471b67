"""Arrays of frameworks, where a program was loaded without saying of which."""
