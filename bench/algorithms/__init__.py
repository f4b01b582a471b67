"""Algorithms of many fields, written once for each framework: functions of the same names.

What they compute is the same; how they say it is what one writes in that framework. They are
compared with each other, with the frameworks' own compilers, and kernel by kernel.
"""
