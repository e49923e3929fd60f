"""What runs inside a sandboxed process; nothing here is believed by the judge."""
