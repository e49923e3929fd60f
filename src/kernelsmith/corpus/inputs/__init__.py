"""What to construct a module with and what to call it on."""
