"""Certificates and proxies of the environment: a function ignores them, an operator's command uses them."""

from __future__ import annotations

import datetime
import ipaddress
import os
import re
import socket
import ssl
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from lambdas.shared.clock import Deadline
from lambdas.shared.http import NotSent, ResponseLost, RetryPolicy, Session, Timeouts
from lambdas.shared.redaction import ApiKey, Secret
from tests.support.resource_environment import ManualClock
from tests.support.scripted_server import Scripted

ROOT = Path(__file__).resolve().parents[2]
KEY = ApiKey("KEY", Secret("canary-of-tls"))
VENDOR = "https://vendor.invalid/it"


NAMES = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("vendor.invalid")]


def certificate(folder):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(NAMES), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    file = folder / "server.pem"
    file.write_bytes(
        made.public_bytes(pem) + key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    )
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
    assert refused.value.kind.code == "NET-TLS"
    assert Heard.requests == []


class Inspecting(ThreadingHTTPServer):
    """A proxy that inspects TLS: it answers in the vendor's place, with its own certificate.

    `status` is that of CONNECT.
    """

    daemon_threads = True

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), _Tunnel)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate(folder))
        self.status = 200
        self.tunnels = []
        self.requests = []
        self.damaged_answer = b""

    def handle_error(self, *where):
        """Ignore errors: a client that doesn't trust the certificate ends the handshake."""


class _Tunnel(BaseHTTPRequestHandler):
    def do_CONNECT(self):
        self.server.tunnels.append(self.path)
        self.send_response(self.server.status)
        self.end_headers()
        if self.server.status != 200:
            return
        with self.server.context.wrap_socket(self.connection, server_side=True) as inner:
            self.server.requests.append(inner.recv(65536).decode())
            if self.server.damaged_answer:
                os.write(inner.fileno(), self.server.damaged_answer)
                return
            inner.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{"a": 1}')

    def log_message(self, *words):
        pass


@pytest.fixture
def proxy(tmp_path, monkeypatch):
    """Return the proxy that the environment names for every address, with its certificate."""
    with Inspecting(tmp_path) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.02], daemon=True)
        thread.start()
        for name in ("https_proxy", "http_proxy", "all_proxy", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
            monkeypatch.delenv(name.upper(), raising=False)
        for name in ("HTTPS_PROXY", "HTTP_PROXY"):
            monkeypatch.setenv(name, f"http://someone:canary-of-the-proxy@127.0.0.1:{server.server_port}")
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "server.pem"))
        yield server
        server.shutdown()
        thread.join(60)


def session(**given):
    clock = ManualClock()
    limits = Timeouts(connect=5, read=5, total=30)
    return Session(
        Deadline(clock, clock.time() + 90), timeouts=limits, retry=RetryPolicy(attempts=1), **given
    )


def test_an_operators_session_uses_the_proxy_and_the_certificates_of_the_environment(proxy):
    assert session(trust_environment=True).call("GET", VENDOR, key=KEY).body == {"a": 1}
    assert proxy.tunnels == ["vendor.invalid:443"]
    assert "Authorization: Basic " in proxy.requests[0]
    assert "canary-of-the-proxy" not in proxy.requests[0]


def test_a_function_ignores_the_proxy_of_the_environment(proxy):
    with pytest.raises(NotSent):
        session().call("GET", VENDOR, key=KEY)
    assert proxy.tunnels == []


def test_a_function_uses_the_proxy_of_the_deployment_file(proxy):
    """The proxy is asked for a tunnel. Its own certificate is not trusted, so nothing is sent."""
    address = f"http://127.0.0.1:{proxy.server_port}"
    with pytest.raises(NotSent) as refused:
        session(proxy=address).call("GET", VENDOR, key=KEY)
    assert refused.value.kind.code == "NET-TLS"
    assert proxy.tunnels == ["vendor.invalid:443"]
    assert proxy.requests == []


def test_a_functions_proxy_that_fails_is_named_by_its_address(proxy):
    proxy.status = 407
    address = f"http://127.0.0.1:{proxy.server_port}"
    with pytest.raises(NotSent, match=f"no connection through the proxy {address}"):
        session(proxy=address).call("POST", VENDOR, body={})


def test_an_operators_session_needs_a_trusted_certificate_from_the_proxy_too(proxy, monkeypatch):
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    with pytest.raises(NotSent) as refused:
        session(trust_environment=True).call("GET", VENDOR, key=KEY)
    assert refused.value.kind.code == "NET-TLS"
    assert proxy.requests == []


@pytest.mark.parametrize(
    "answer",
    [b"\x17\x03\x03\x00\x20" + bytes(32), b"HTTP/1.1 503 Unavailable\r\n\r\n"],
    ids=["encrypted", "plain"],
)
def test_an_error_of_tls_after_the_request_may_mean_that_it_had_an_effect(proxy, answer):
    proxy.damaged_answer = answer
    with pytest.raises(ResponseLost) as lost:
        session(trust_environment=True).call("GET", VENDOR, key=KEY)
    assert (lost.value.kind.code, len(proxy.requests)) == ("NET-UNREACHABLE", 1)


def test_an_operators_session_excludes_what_the_environment_excludes(proxy, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "vendor.invalid")
    with pytest.raises(NotSent):
        session(trust_environment=True).call("GET", VENDOR)
    assert proxy.tunnels == []


def test_a_password_of_netrc_never_replaces_a_token(proxy, tmp_path, monkeypatch):
    file = tmp_path / "netrc"
    file.write_text("machine vendor.invalid login someone password canary-of-netrc\n")
    monkeypatch.setenv("NETRC", str(file))
    session(trust_environment=True).call("GET", VENDOR, headers={"Authorization": "Bearer token"})
    assert "Authorization: Bearer token\r\n" in proxy.requests[0]


def test_a_loopback_address_is_never_reached_through_a_proxy(proxy):
    """It may be plain HTTP, and the proxy another machine."""
    with Scripted({"GET /it": (200, {"b": 2})}) as server:
        assert session(trust_environment=True).call("GET", f"{server.url}/it", key=KEY).body == {"b": 2}
    assert proxy.tunnels == proxy.requests == []


@pytest.mark.parametrize("listens", [True, False])
def test_a_proxy_that_fails_is_named_and_nothing_was_sent(proxy, monkeypatch, listens):
    proxy.status = 407
    if not listens:
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        monkeypatch.setenv("HTTPS_PROXY", f"http://someone:canary-of-the-proxy@127.0.0.1:{port}")
    with pytest.raises(NotSent, match="no connection through the proxy of HTTPS_PROXY") as failed:
        session(trust_environment=True).call("POST", VENDOR, body={})
    assert "canary" not in str(failed.value)


def test_every_session_of_a_command_uses_the_environment_and_none_of_a_function():
    made = re.compile(r"(?<![.\w])Session\(([^()]*(?:\([^()]*(?:\([^()]*\))?[^()]*\)[^()]*)*)\)")
    operators, functions = (
        [
            call
            for folder in folders
            for file in (ROOT / folder).rglob("*.py")
            for call in made.findall(file.read_text())
        ]
        for folders in (["lakeferry/credentials", "lakeferry/deployment", "lakeferry/health"], ["lambdas"])
    )
    assert len(operators) >= 5
    assert [call for call in operators if "trust_environment=True" not in call] == []
    assert len(functions) >= 3
    assert [call for call in functions if "trust_environment" in call] == []
