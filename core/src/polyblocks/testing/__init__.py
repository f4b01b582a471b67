"""What the plugins of others are tested with."""
