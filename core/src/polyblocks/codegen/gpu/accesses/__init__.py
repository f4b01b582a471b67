"""Places in shared and main memory, and how a chip reads and copies what is there."""
