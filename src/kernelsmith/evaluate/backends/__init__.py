"""Backends that come with Kernel-Smith; each is imported only when it is asked for."""
