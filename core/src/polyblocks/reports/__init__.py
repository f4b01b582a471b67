"""What was compiled and what fell back."""
