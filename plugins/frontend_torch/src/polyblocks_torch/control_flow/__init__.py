"""``torch.cond``, ``while_loop`` and ``scan``: operators whose operands are graphs."""
