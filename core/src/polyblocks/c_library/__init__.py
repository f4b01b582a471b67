"""Programs as shared objects for C and C++: what the targets' libraries have in common."""
