"""Calls of decorated functions whose arguments are like those of an earlier one, in machine code.

An inline cache, as virtual machines have one at each place of a call: it holds what Dynamo's guards
have been found to hold for, and the code that belongs to it.
"""
