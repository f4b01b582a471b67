"""Matrix products and convolutions, once for each framework: functions of the same names."""
