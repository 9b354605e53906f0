"""What the command line does: run, compile, info, cache, and what they have in common."""
