"""The judge on NVIDIA devices: what it asks of its processes there, and how it times them."""
