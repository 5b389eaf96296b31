"""Write the certificates of a PEM file as a trust store for Java: `python -m lakeferry.local.trust_store PEM
STORE`.

The Java that the set-up downloads trusts public authorities only. Behind a proxy that inspects TLS, the
machine's own authorities sign what it answers, and Python, pip and uv know them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore

#: Java's own default. It protects nothing, because certificates are public.
PASSWORD: Final = "changeit"  # noqa: S105 - see above


def write(pem: Path, store: Path) -> None:
    """Raises ValueError if the file has no certificates."""
    certificates = x509.load_pem_x509_certificates(pem.read_bytes())
    entries = [
        PKCS12Certificate(certificate, str(number).encode())
        for number, certificate in enumerate(certificates)
    ]
    store.write_bytes(serialize_java_truststore(entries, BestAvailableEncryption(PASSWORD.encode())))


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
