"""What is found out about nests without changing them."""
