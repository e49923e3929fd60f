"""The execution filter: everything harvested runs here, in the sandbox, and nowhere else."""
