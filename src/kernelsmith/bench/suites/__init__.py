"""One file per suite: from where the user has it to tasks that the judge can run as they are."""
