"""What is worth doing once, in the process that all others are forked from.

Nothing here runs a torch operator, asks CUDA anything or starts a thread.
"""

import triton.backends.nvidia.compiler
import triton.backends.nvidia.driver
import triton.runtime.cache

# Triton hashes its own 400 MB before it looks anything up: 0.4 s in every process.
triton.runtime.cache.triton_key()
