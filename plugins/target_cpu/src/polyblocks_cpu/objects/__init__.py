"""Object files: what they define and call, and linking them into a process without LLVM."""
