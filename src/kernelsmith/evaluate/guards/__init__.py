"""Guards: what no honest kernel does, read from its source and seen from outside its process."""
