"""Where requests may go: https, or a loopback address written as a number."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from lambdas.shared import errors
from lambdas.shared.errors import LakeferryError


def is_loopback(url: str) -> bool:
    """True for 127.0.0.1 and its like. A name, even localhost, may be made to mean another host."""
    try:
        return ipaddress.ip_address(urlsplit(url).hostname or "").is_loopback
    except ValueError:
        return False


def require_safe(url: str) -> None:
    """Raises LakeferryError for plain HTTP to elsewhere, another scheme, and credentials in the URL."""
    parts = urlsplit(url)
    if parts.username or parts.password or not parts.hostname:
        raise LakeferryError(errors.ADDRESS, f"{parts.scheme}://{parts.hostname} has no host, or holds credentials")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(url)):
        raise LakeferryError(errors.ADDRESS, f"{parts.scheme}://{parts.hostname} is not https")
