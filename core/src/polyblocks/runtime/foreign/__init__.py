"""Arrays of frameworks, where a program was loaded without naming one."""
