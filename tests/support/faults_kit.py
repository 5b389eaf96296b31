"""A bare HTTP client without retries, which shows what is on the wire."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit


def call(url, method="GET", path="/", body=None, headers=None):
    """Return the status, the headers (by lower-case name) and the body.

    Raises ConnectionResetError or IncompleteRead.
    """
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=30)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        response = connection.getresponse()
        return (
            response.status,
            {name.lower(): value for name, value in response.getheaders()},
            response.read(),
        )
    finally:
        connection.close()
