"""The embedded AWS: MiniStack in a process of its own, patched where it is laxer than AWS.

`server.EmbeddedAws` starts and stops it; `launcher` is what runs inside its process.
"""
