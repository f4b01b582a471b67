"""Steps in time, interacting particles, and small matrices."""
