"""Tests for plugins of other distributions."""
