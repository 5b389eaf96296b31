"""The embedded AWS: MiniStack in its own process, patched where it differs from AWS.

`server.EmbeddedAws` starts and stops it; `launcher` runs inside its process.
"""
