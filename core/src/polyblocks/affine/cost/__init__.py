"""The cost model: what a schedule of a nest takes."""
