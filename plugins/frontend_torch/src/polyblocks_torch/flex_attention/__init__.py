"""``torch.nn.attention.flex_attention``: attention with functions of scores."""
