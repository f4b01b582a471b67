"""Chains of products as nests of blocks of steps, with running numbers of each row."""
