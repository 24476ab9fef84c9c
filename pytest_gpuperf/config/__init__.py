"""What a user may set: command-line flags, ini keys and call arguments, checked before anything runs."""
