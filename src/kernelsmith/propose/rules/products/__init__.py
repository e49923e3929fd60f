"""Matrix products in Triton, float32 on tensor cores: templates, and products of other calls."""
