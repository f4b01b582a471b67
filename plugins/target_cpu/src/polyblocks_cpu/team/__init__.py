"""One team of threads runs all of a program: what each thread does, and where they wait."""
