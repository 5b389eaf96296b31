"""The `lakeferry` command line.

This module imports nothing, because `lakeferry.local.bootstrap` runs before any dependency is installed.
"""

__version__ = "0.1.0"
