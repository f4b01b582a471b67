"""Machine code of the runtime itself: what calls programs without Python."""
