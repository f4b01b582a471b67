"""Python numbers whose values change from call to call: arguments of the compiled program."""
