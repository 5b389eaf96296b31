"""The Java that the set-up downloads trusts the authorities of this machine, as Python does."""

from __future__ import annotations

import datetime
import subprocess

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from lakeferry.local import trust_store
from lakeferry.local.java import find_java


def authority(name: str) -> x509.Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
    valid = builder.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    return valid.sign(key, hashes.SHA256())


def test_java_reads_every_authority_of_a_pem_file(tmp_path):
    authorities = [authority("proxy.invalid"), authority("other.invalid")]
    pem = tmp_path / "authorities.pem"
    store = tmp_path / "authorities.p12"
    pem.write_bytes(b"".join(certificate.public_bytes(Encoding.PEM) for certificate in authorities))
    trust_store.write(pem, store)
    keytool = find_java().home / "bin" / "keytool"
    command = [keytool, "-list", "-keystore", store, "-storepass", trust_store.PASSWORD]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert listed.count("trustedCertEntry") == 2
    for certificate in authorities:
        assert certificate.fingerprint(hashes.SHA256()).hex(":").upper() in listed
