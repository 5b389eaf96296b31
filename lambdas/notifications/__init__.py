"""Tells the recipients of an export what came of a run: its record in, a mail out, each once."""
