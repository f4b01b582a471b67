"""The cases' functions, written once for each framework: functions of the same names."""
