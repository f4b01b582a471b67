"""Programs that run on a device: what is launched, with what, and by which driver."""
