"""Pipelines whose stages have images, pyramids and grids of several resolutions."""
