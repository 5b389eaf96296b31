"""Mails about the runs of exports."""
