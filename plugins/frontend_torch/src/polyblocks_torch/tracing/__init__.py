"""Python code of the user -> graphs of Dynamo: its settings, and what it cannot trace as it is."""
