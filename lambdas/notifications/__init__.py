"""Mails about export runs."""
