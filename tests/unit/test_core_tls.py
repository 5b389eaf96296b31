"""A server with an untrusted certificate receives no request, whatever the environment says."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from resource_environment import ManualClock

from lambdas.shared.clock import Deadline
from lambdas.shared.http import NotSent, RetryPolicy, Session
from lambdas.shared.redaction import ApiKey, Secret


def certificate(folder):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    file = folder / "server.pem"
    file.write_bytes(made.public_bytes(pem) + key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    return file


class Heard(BaseHTTPRequestHandler):
    requests: list[str] = []  # noqa: RUF012

    def do_GET(self):
        self.requests.append(self.path)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *words):
        pass


@pytest.fixture
def address(tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate(tmp_path))
    server = HTTPServer(("127.0.0.1", 0), Heard)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=[0.02], daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join(60)
    server.server_close()


def test_a_server_with_an_untrusted_certificate_receives_nothing(address, tmp_path, monkeypatch):
    """Variables of the environment that would trust the certificate have no effect."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "server.pem"))
    clock = ManualClock()
    session = Session(Deadline(clock, clock.time() + 90), retry=RetryPolicy(attempts=1))
    with pytest.raises(NotSent) as refused:
        session.call("GET", f"{address}/secret", key=ApiKey("KEY", Secret("canary-of-tls")))
    assert refused.value.row.code == "NET-TLS"
    assert Heard.requests == []
