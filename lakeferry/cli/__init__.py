"""The command line itself: one module for each command or group, what they share, and how they print."""
