"""The HTTP session at its limits: waits, time left, sizes, and the words and class of each failure."""

from __future__ import annotations

import gzip
import ssl

import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter

from lambdas.shared.clock import Deadline
from lambdas.shared.errors import LakeferryError, OutOfTime
from lambdas.shared.http import (
    LARGEST_BODY,
    USER_AGENT,
    NotSent,
    Response,
    ResponseLost,
    RetryPolicy,
    Session,
    Timeouts,
    is_loopback,
    read_requested_wait,
    require_safe,
)
from tests.support.resource_environment import ManualClock
from tests.support.scripted_server import dripping

GET = "GET /it"
POST = "POST /it"
AT_ONCE = RetryPolicy(spread=lambda: 0.0)


@pytest.fixture
def clock():
    return ManualClock()


def open_session(clock, seconds=90.0, retry=AT_ONCE, timeouts=Timeouts(1, 1, 30), **given):
    return Session(Deadline(clock, clock.time() + seconds), retry=retry, timeouts=timeouts, **given)


def call(server, clock, method="GET", *, seconds=90.0, **given):
    return open_session(clock, seconds).call(method, server.url + "/it", **given)


# --- retries and waits


@pytest.mark.parametrize(
    ("method", "repeatable", "calls"),
    [
        ("GET", None, 2), ("PUT", None, 2), ("DELETE", None, 2), ("PATCH", None, 2), ("POST", None, 1),
        ("GET", False, 1), ("PATCH", False, 1), ("POST", True, 2),
    ],
)  # fmt: skip
def test_which_calls_are_repeated(server, clock, method, repeatable, calls):
    server.answers[f"{method} /it"] = [(500, None), (200, {})]
    assert call(server, clock, method, repeatable=repeatable).status == (200 if calls == 2 else 500)
    assert len(server.sent) == calls


def test_a_repeated_call_says_so(server, clock):
    server.answers[GET] = [(500, None), (500, None), (200, {})]
    call(server, clock, params={"a": "1"}, retry_params={"retry": "true"})
    assert [sent.query for sent in server.sent] == [{"a": "1"}, *[{"a": "1", "retry": "true"}] * 2]
    server.answers[GET] = [(500, None), (200, {})]
    call(server, clock)
    assert [sent.query for sent in server.sent[3:]] == [{}, {}]


def test_waits_double_up_to_half_a_minute(server, clock):
    server.answers[GET] = (429, None)
    policy = RetryPolicy(attempts=8, first_wait=2.0, spread=lambda: 1.0)
    assert open_session(clock, 1000, policy).call("GET", f"{server.url}/it").status == 429
    assert clock.slept == [2, 4, 8, 16, 30, 30, 30]
    assert len(server.sent) == 8


def test_a_policy_without_repetition_sends_once(server, clock):
    server.answers[GET] = (500, None)
    assert open_session(clock, retry=RetryPolicy(attempts=1)).call("GET", f"{server.url}/it").status == 500
    assert (len(server.sent), clock.slept) == (1, [])


@pytest.mark.parametrize(("wait", "calls"), [("60", 2), ("89", 2), ("90", 1), ("91", 1)])
def test_a_wait_ends_before_the_invocation_does(server, clock, wait, calls):
    server.answers[GET] = [(429, None, {"Retry-After": wait}), (200, {})]
    assert call(server, clock, seconds=90).status == (200 if calls == 2 else 429)
    assert clock.slept == [float(wait)] * (calls - 1)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_wait_that_leaves_no_time_was_no_use(server, clock, method):
    """What may not be repeated was certainly not done: a 429 means that."""
    server.answers[f"{method} /it"] = [(429, None, {"Retry-After": "89.5"}), (200, {})]
    expected = OutOfTime if method == "GET" else NotSent
    with pytest.raises(expected, match="LF-OUT-OF-TIME  no time is left in this invocation"):
        call(server, clock, method, seconds=90)
    assert len(server.sent) == 1


@pytest.mark.parametrize(("seconds", "is_sent"), [(1.0, True), (0.99, False), (0.0, False), (-1.0, False)])
def test_a_call_needs_a_second(server, clock, seconds, is_sent):
    server.answers[GET] = (200, {})
    if is_sent:
        assert call(server, clock, seconds=seconds).status == 200
    else:
        with pytest.raises(OutOfTime):
            call(server, clock, seconds=seconds)
    assert len(server.sent) == is_sent


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7", "X-RateLimit-Reset": "3"}, 7),
        ({"Retry-After": "0"}, 0),
        ({"Retry-After": "-5"}, 0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "", "X-RateLimit-Reset": "nan"}, None),
        ({"Retry-After": "Mon, 21 Sep 2026 14:13:19 GMT"}, 0),
        ({"X-RateLimit-Reset": "Mon, 21 Sep 2026 14:13:21 GMT"}, 1),
    ],
)
def test_the_wait_that_a_vendor_asks_for(clock, headers, seconds):
    assert read_requested_wait(headers, clock) == seconds


# --- addresses


@pytest.mark.parametrize(
    ("url", "is_one"),
    [("http://127.0.0.1", True), ("http://127.9.9.9:80/x", True), ("http://[::1]:80", True),
     ("http://localhost", False), ("http://10.0.0.1", False), ("http://127.0.0.1.example", False),
     ("", False), ("127.0.0.1", False)],
)  # fmt: skip
def test_a_loopback_address_is_a_number(url, is_one):
    assert is_loopback(url) is is_one


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("https://user@host.example", "https://host.example has no host, or holds credentials"),
        ("https://:word@host.example", "https://host.example has no host, or holds credentials"),
        ("https://", "https://None has no host, or holds credentials"),
        ("http://host.example", "http://host.example is not https"),
        ("ftp://127.0.0.1", "ftp://127.0.0.1 is not https"),
        ("ws://127.0.0.1", "ws://127.0.0.1 is not https"),
        ("ws://host.example", "ws://host.example is not https"),
        ("https://host.example", None),
        ("https://127.0.0.1", None),
        ("http://127.0.0.1:80", None),
    ],
)
def test_why_an_address_is_not_safe(url, problem):
    if problem is None:
        require_safe(url)
        return
    with pytest.raises(LakeferryError, match=f"NET-ADDRESS  {problem}"):
        require_safe(url)


# --- requests and answers


def test_what_a_request_says_of_itself(server, clock):
    server.answers[GET] = (200, {})
    call(server, clock)
    call(server, clock, headers={"Accept": "text/plain", "X-Own": "1"})
    named = [{name: sent.headers.get(name) for name in ("accept", "x-own")} for sent in server.sent]
    assert named == [{"accept": "application/json", "x-own": None}, {"accept": "text/plain", "x-own": "1"}]
    assert {sent.headers["user-agent"] for sent in server.sent} == {USER_AGENT}
    assert not any("authorization" in sent.headers for sent in server.sent)


def test_a_form_is_sent_as_fields():
    class Form(HTTPAdapter):
        def send(self, request, **given):
            self.request = request
            raise requests.ConnectionError

    form = Form()
    with pytest.raises(ResponseLost):
        open_session(ManualClock(), adapter=form).call(
            "POST", "http://127.0.0.1/it", form={"a": "1 2", "b": "x"}
        )
    assert form.request.body == "a=1+2&b=x"
    assert form.request.headers["Content-Type"] == "application/x-www-form-urlencoded"


def test_headers_of_an_answer_are_found_in_any_case(server, clock):
    server.answers[GET] = (200, {}, {"X-Own": "1"})
    answer = call(server, clock)
    assert (answer.headers["x-own"], answer.request_id) == ("1", "req-1")
    assert Response(200, {}, None).request_id == ""
    assert Response(200, {"X-Amzn-RequestId": "b"}, None).request_id == "b"


@pytest.mark.parametrize(
    ("status", "body", "read"),
    [
        (404, b"<html>", "<html>"),
        (500, b"\xff", "\ufffd"),
        (400, b"\x1f\x8bcut off", "\x1f\ufffdcut off"),
        (200, b" \n", None),
        (404, b"", None),
        (302, b'{"a": 1}', {"a": 1}),
        (200, b'\n{"a": 1}', {"a": 1}),
    ],
)
def test_the_body_of_an_answer(server, clock, status, body, read):
    server.answers[POST] = (status, body)
    assert call(server, clock, "POST").body == read


# Without a time: it would be in the names of tests, and the processes of a run must name them alike.
PACKED = gzip.compress(b'{"a": 1}', mtime=0)


@pytest.mark.parametrize(
    "body", [b"<html>", b"\xff", b"{", b"\x1f\x8bno gzip at all", PACKED[:-4], PACKED[:10] + b"\xff" * 20]
)
@pytest.mark.parametrize("status", [200, 302])
def test_a_success_must_be_json(server, clock, status, body):
    server.answers[POST] = (status, body)
    message = f"NET-UNREADABLE  POST {server.url}/it: HTTP {status} with a body that is not JSON"
    with pytest.raises(ResponseLost, match=message):
        call(server, clock, "POST")


@pytest.mark.parametrize(("more", "is_read"), [(0, True), (1, False)])
def test_a_body_has_sixteen_mebibytes_at_most(server, clock, more, is_read):
    assert LARGEST_BODY == 16 * 2**20
    server.answers[POST] = (200, b" " * (LARGEST_BODY + more))
    if is_read:
        assert call(server, clock, "POST").body is None
        return
    message = f"NET-UNREACHABLE  POST {server.url}/it: the answer took too long, or is too long"
    with pytest.raises(ResponseLost, match=message):
        call(server, clock, "POST")


@pytest.mark.parametrize(("seconds", "total"), [(20, 100), (100, 20)])
def test_a_body_ends_with_the_call_or_with_the_invocation(server, clock, seconds, total):
    def a_second():
        clock.now += 1

    server.answers[POST] = dripping(b" " * 21, a_second)
    limits = Timeouts(1, 1, total)
    with pytest.raises(ResponseLost, match="took too long"):
        open_session(clock, seconds, timeouts=limits).call("POST", f"{server.url}/it")


@pytest.mark.parametrize(("seconds", "is_read"), [(59, True), (60, False)])
def test_a_call_takes_less_than_a_minute(server, clock, seconds, is_read):
    def a_second():
        clock.now += 1

    server.answers[POST] = dripping(b" " * seconds, a_second)
    session = open_session(clock, 100, timeouts=None)
    if is_read:
        assert session.call("POST", f"{server.url}/it").body is None
        return
    with pytest.raises(ResponseLost, match="took too long"):
        session.call("POST", f"{server.url}/it")


# --- timeouts and failures


class Wire(HTTPAdapter):
    """Records how long each call would wait, and fails with `error`."""

    def __init__(self, error=None):
        super().__init__()
        self.error = error or requests.ConnectionError()
        self.timeouts = []

    def send(self, request, *, timeout, **given):
        self.timeouts.append(timeout)
        raise self.error


@pytest.mark.parametrize(
    ("of_session", "of_call", "seconds", "timeout"),
    [
        (None, {}, 90, (5.0, 30.0)),
        (None, {"timeouts": Timeouts(read=50.0)}, 90, (5.0, 50.0)),
        (Timeouts(2, 3, 4), {"timeouts": Timeouts(read=50.0)}, 90, (2, 3)),
        (None, {}, 20, (5.0, 20.0)),
        (None, {}, 4, (4.0, 4.0)),
    ],
)
def test_a_call_waits_no_longer_than_the_invocation(of_session, of_call, seconds, timeout):
    wire = Wire()
    session = open_session(ManualClock(), seconds, timeouts=of_session, adapter=wire)
    with pytest.raises(ResponseLost):
        session.call("POST", "http://127.0.0.1/it", **of_call)
    assert wire.timeouts == [timeout]


def tls(reason):
    error = ssl.SSLError(1, "not to be told")
    error.reason = reason
    return requests.exceptions.SSLError(urllib3.exceptions.SSLError(error))


def wrapped(kind, reason):
    return kind(urllib3.exceptions.MaxRetryError(None, "/it", reason))


NO_HOST = urllib3.exceptions.NewConnectionError(None, "not to be told")
SLOW_HOST = urllib3.exceptions.ConnectTimeoutError(None, "not to be told")
SLOW = urllib3.exceptions.ReadTimeoutError(None, "/it", "not to be told")


@pytest.mark.parametrize(
    ("error", "kind", "what"),
    [
        (tls("CERTIFICATE_VERIFY_FAILED"), NotSent, "NET-TLS  CALL: the TLS handshake failed"),
        (tls("UNSUPPORTED_PROTOCOL"), NotSent, "NET-TLS  CALL: the TLS handshake failed"),
        (tls("NO_CERTIFICATE_OR_CRL_FOUND"), NotSent, "NET-TLS  CALL: the TLS handshake failed"),
        (tls("DECRYPTION_FAILED"), ResponseLost, "NET-UNREACHABLE  CALL: the TLS connection failed"),
        (requests.exceptions.SSLError(), ResponseLost, "NET-UNREACHABLE  CALL: the TLS connection failed"),
        (
            wrapped(requests.exceptions.ProxyError, NO_HOST),
            NotSent,
            "NET-UNREACHABLE  CALL: no connection through the proxy of HTTPS_PROXY",
        ),
        (
            wrapped(requests.ConnectionError, NO_HOST),
            NotSent,
            r"NET-UNREACHABLE  CALL: no connection \(NewConnectionError\)",
        ),
        (
            wrapped(requests.ConnectTimeout, SLOW_HOST),
            NotSent,
            r"NET-UNREACHABLE  CALL: no connection \(ConnectTimeoutError\)",
        ),
        (
            wrapped(requests.ConnectionError, SLOW_HOST),
            NotSent,
            r"NET-UNREACHABLE  CALL: no connection \(ConnectTimeoutError\)",
        ),
        (requests.ConnectTimeout(), NotSent, r"NET-UNREACHABLE  CALL: no connection \(NoneType\)"),
        (
            requests.ReadTimeout(SLOW),
            ResponseLost,
            r"NET-UNREACHABLE  CALL: no answer \(ReadTimeoutError\)",
        ),
        (
            requests.ConnectionError(urllib3.exceptions.ProtocolError("not to be told")),
            ResponseLost,
            r"NET-UNREACHABLE  CALL: no answer \(ProtocolError\)",
        ),
        (requests.ConnectionError(), ResponseLost, r"NET-UNREACHABLE  CALL: no answer \(NoneType\)"),
    ],
)
def test_each_failure_says_whether_the_request_was_sent(error, kind, what):
    wire = Wire(error)
    session = open_session(ManualClock(), adapter=wire)
    with pytest.raises(LakeferryError, match=what.replace("CALL", "POST http://127.0.0.1/it")) as failed:
        session.call("POST", "http://127.0.0.1/it")
    assert type(failed.value) is kind
    assert "not to be told" not in str(failed.value)
    assert len(wire.timeouts) == (4 if kind is NotSent else 1)


def test_certificates_of_an_operator_that_are_not_there_are_named(monkeypatch, tmp_path):
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "missing.pem"))
    session = open_session(ManualClock(), trust_environment=True)
    words = "the file of REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE can't be read"
    with pytest.raises(NotSent, match=f"NET-TLS  GET https://vendor.invalid/it: {words}"):
        session.call("GET", "https://vendor.invalid/it")
