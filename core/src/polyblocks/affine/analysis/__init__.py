"""Analyses of nests."""
