"""The benchmark harness: cases, peers, measuring and reporting, one file each."""
