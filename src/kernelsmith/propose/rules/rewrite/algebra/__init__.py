"""The rules themselves: each says what it does, when it may, and why that holds."""
