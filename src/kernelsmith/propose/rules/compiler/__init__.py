"""What torch's compiler generates for a task, turned into stand-alone candidates."""
