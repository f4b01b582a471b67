"""The passes of stage S4 that all GPUs share."""
