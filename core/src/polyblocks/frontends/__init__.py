"""What all frontends need: reports of functions, and programs in parts."""
