"""Programs of the bench that run in sandboxes or in processes of their own."""
