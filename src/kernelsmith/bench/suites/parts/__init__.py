"""Source text that goes into generated tasks; read as text here and run only in the sandbox."""
