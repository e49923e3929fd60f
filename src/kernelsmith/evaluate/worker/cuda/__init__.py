"""What runs on the device's side: the trusted process, and the candidate's."""
