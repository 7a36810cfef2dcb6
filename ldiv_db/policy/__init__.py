"""What a policy says, and what comes of it when it is held to its source (`resolve`)."""
