"""The built-in proposer: reads the task, writes parametrised kernels, needs no model."""
