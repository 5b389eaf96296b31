"""Removing what others left in places of ours, when a deployment goes. Everything may be asked for again."""
