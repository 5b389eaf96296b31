"""Opens links in mails: pages, downloads, revocations."""
