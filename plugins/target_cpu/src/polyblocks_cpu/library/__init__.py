"""Programs as shared objects for C and C++: no Python, and nothing but the OpenMP runtime."""
