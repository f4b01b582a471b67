"""What the mid-level hands over to a target's lowering: the contract, and what checks it."""
