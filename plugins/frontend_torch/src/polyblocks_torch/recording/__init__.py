"""Graphs of Dynamo -> graphs of ATen operations -> captures."""
