"""Code that frontends share: reports of functions, and programs in parts."""
