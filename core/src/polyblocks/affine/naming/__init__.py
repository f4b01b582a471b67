"""What nests say of themselves: kinds, names, estimates."""
