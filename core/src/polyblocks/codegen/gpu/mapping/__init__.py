"""How a nest runs on a GPU: threads, tiles, and the memory of each buffer."""
