"""Instructions of matrix units, which the plugins of targets bring."""
