"""Reports of compiled programs and fallbacks."""
