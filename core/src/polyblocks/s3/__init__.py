"""S3's output for a target's lowering: the contract, and its verifier."""
