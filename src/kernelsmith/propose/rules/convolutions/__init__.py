"""Library convolutions of a compiled call, done by kernels of our own."""
