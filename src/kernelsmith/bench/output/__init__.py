"""How figures are shown: tables, pictures, one page, and KernelBench's own layout."""
