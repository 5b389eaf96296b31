"""The operator's command line. Importing it costs nothing: `bootstrap` runs before any dependency is installed."""

__version__ = "0.1.0"
