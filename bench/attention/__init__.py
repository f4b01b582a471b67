"""Attention, and what is computed as it is: a contraction, a reduction, another contraction."""
