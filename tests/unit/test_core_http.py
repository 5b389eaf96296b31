"""The HTTP session with a loopback server: what it retries, how long it waits, and which addresses it
refuses.
"""

from __future__ import annotations

import gzip
import socket
import threading

import pytest

from lambdas.shared.clock import Deadline
from lambdas.shared.errors import LakeferryError, OutOfTime
from lambdas.shared.http import LARGEST_BODY, NotSent, ResponseLost, RetryPolicy, Session, Timeouts
from lambdas.shared.redaction import ApiKey, Secret
from tests.support.resource_environment import ManualClock
from tests.support.scripted_server import Scripted, cut_short, dripping, held, reset

KEY = ApiKey("the-id", Secret("canary-of-http"))
GET = "GET /it"
POST = "POST /it"


@pytest.fixture
def clock():
    return ManualClock()


def session(clock, seconds=90.0, spread=0.0, **timeouts):
    given = Timeouts(**{"connect": 1.0, "read": 0.2, "total": 30.0, **timeouts})
    return Session(
        Deadline(clock, clock.time() + seconds), timeouts=given, retry=RetryPolicy(spread=lambda: spread)
    )


def call(server, clock, method="GET", **given):
    options = {name: given.pop(name) for name in ("seconds", "spread", "read", "total") if name in given}
    return session(clock, **options).call(method, server.url + "/it", **given)


def test_an_answer_is_parsed_once(server, clock):
    server.answers[GET] = (200, {"data": [1]})
    answer = call(server, clock, key=KEY, params={"page_size": "2"}, headers={"X-Own": "1"})
    assert (answer.status, answer.body, answer.request_id) == (200, {"data": [1]}, "req-1")
    assert server.sent[0].query == {"page_size": "2"}
    assert server.sent[0].headers["user-agent"].startswith("Lakeferry/")
    assert server.sent[0].headers["authorization"].startswith("Basic ")


def test_an_empty_answer_has_no_body(server, clock):
    server.answers[POST] = (202, None)
    assert call(server, clock, "POST", body={"a": 1}).body is None
    assert server.sent[0].body == {"a": 1}


def test_gzip_without_its_header_is_read(server, clock):
    server.answers[GET] = (200, gzip.compress(b'{"a": 1}'))
    assert call(server, clock).body == {"a": 1}


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_get_is_repeated_after_a_failure_of_the_server(server, clock, status):
    server.answers[GET] = [(status, b"<html>"), (status, None), (200, {})]
    assert call(server, clock).status == 200
    assert clock.slept == [0.5, 1.0]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 499, 501])
def test_permanent_errors_are_not_retried(server, clock, status):
    server.answers[GET] = (status, {})
    assert call(server, clock).status == status
    assert len(server.sent) == 1


def test_a_post_is_not_repeated_if_it_may_have_had_an_effect(server, clock):
    server.answers[POST] = [(500, {}), (200, {})]
    assert call(server, clock, "POST", body={}).status == 500
    server.answers[POST] = [reset, (200, {})]
    with pytest.raises(ResponseLost):
        call(server, clock, "POST", body={})
    assert server.routes == [POST, POST]


def test_an_idempotent_post_is_repeated(server, clock):
    server.answers[POST] = [reset, (500, {}), (200, {})]
    assert call(server, clock, "POST", body={}, repeatable=True).status == 200


@pytest.mark.parametrize("answer", [reset, cut_short, (200, b'{"data": ['), (200, b"<html>down</html>")])
def test_a_get_is_repeated_after_a_broken_answer(server, clock, answer):
    server.answers[GET] = [answer, (200, {"a": 1})]
    assert call(server, clock).body == {"a": 1}


@pytest.mark.parametrize("answer", [reset, cut_short, (200, b'{"data": ['), (200, b"<html>down</html>")])
def test_a_repeatedly_broken_answer_is_reported(server, clock, answer):
    server.answers[GET] = answer
    with pytest.raises(ResponseLost) as broken:
        call(server, clock, key=KEY)
    assert len(server.sent) == 4
    assert "canary" not in str(broken.value)
    assert broken.value.__cause__ is None


def test_a_body_that_never_comes_ends_the_call(server, clock):
    event = threading.Event()
    server.answers[GET] = [held(event), (200, {"a": 1})]
    assert call(server, clock, read=0.1).body == {"a": 1}
    event.set()


def test_a_slow_body_ends_with_the_time_limit_of_the_call(server, clock):
    def a_second():
        clock.now += 1

    server.answers[POST] = dripping(b'{"a":' + b" " * 50 + b"1}", a_second)
    with pytest.raises(ResponseLost, match="too long"):
        call(server, clock, "POST", body={}, total=20)


def test_a_body_without_end_is_not_read(server, clock):
    server.answers[POST] = (200, b" " * (LARGEST_BODY + 2))
    with pytest.raises(ResponseLost, match="too long"):
        call(server, clock, "POST", body={}, read=5)


def test_a_compressed_body_is_measured_unpacked(server, clock):
    server.answers[POST] = (200, gzip.compress(b" " * (LARGEST_BODY + 2)), {"Content-Encoding": "gzip"})
    with pytest.raises(ResponseLost, match="too long"):
        call(server, clock, "POST", body={}, read=5)


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"Retry-After": "7"}, 7),
        ({"X-RateLimit-Reset": "11"}, 11),
        *[
            ({"Retry-After": unusable, "X-RateLimit-Reset": "3"}, 3)
            for unusable in ("x", "nan", "inf", "-inf", "1e999")
        ],
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_429_is_retried_after_the_given_time(server, clock, headers, wait, method):
    server.answers[f"{method} /it"] = [(429, None, headers), (200, {})]
    assert call(server, clock, method).status == 200
    assert clock.slept == [wait]


def test_a_retry_after_date_is_understood(server, clock):
    server.answers[GET] = [(429, None, {"Retry-After": "Mon, 21 Sep 2026 14:13:30 GMT"}), (200, {})]
    assert call(server, clock).status == 200
    assert clock.slept == [10.0]


def test_waits_grow_without_a_header_and_are_randomised(server, clock):
    server.answers[GET] = (429, None)
    assert call(server, clock).status == 429
    assert clock.slept == [0.5, 1.0, 2.0]
    other = ManualClock()
    call(server, other, spread=1.0)
    assert other.slept == [1.0, 2.0, 4.0]


def test_a_given_wait_is_randomised_and_never_shortened(server, clock):
    server.answers[GET] = [(429, None, {"Retry-After": "7"}), (200, {})]
    call(server, clock, spread=0.5)
    assert clock.slept == [7.5]


def test_a_wait_beyond_the_deadline_is_not_started(server, clock):
    server.answers[GET] = (429, None, {"Retry-After": "120"})
    assert call(server, clock, seconds=100).status == 429
    assert clock.slept == []


def test_no_call_is_started_without_time(server, clock):
    with pytest.raises(OutOfTime):
        call(server, clock, seconds=0.5)
    assert server.sent == []


def test_a_refused_connection_means_that_nothing_was_sent(clock):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(NotSent, match="no connection"):
        session(clock).call("POST", f"http://127.0.0.1:{port}/it", body={})
    assert len(clock.slept) == 3


def test_a_server_without_tls_is_refused(server, clock):
    with pytest.raises(ResponseLost, match="the TLS connection failed"):
        session(clock).call("GET", server.url.replace("http:", "https:") + "/it", key=KEY)
    assert server.sent == []


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/it",
        "http://localhost/it",
        "ftp://127.0.0.1/it",
        "https://a:secret@example.com/it",
        "https:///it",
        "it",
    ],
)
def test_unsafe_addresses_are_refused(clock, url):
    with pytest.raises(LakeferryError) as refused:
        session(clock).call("GET", url, key=KEY)
    assert refused.value.kind.code == "NET-ADDRESS"
    assert "secret@" not in str(refused.value)


def test_a_redirect_is_not_followed(server, clock):
    with Scripted({GET: (200, {})}) as other:
        server.answers[GET] = (302, None, {"Location": other.url + "/it"})
        assert call(server, clock, key=KEY).status == 302
        assert other.sent == []


def test_a_proxy_or_password_of_the_environment_is_ignored(server, clock, monkeypatch, tmp_path):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password else\n")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("NO_PROXY", "")
    server.answers[GET] = (200, {})
    assert call(server, clock).status == 200
    assert "authorization" not in server.sent[0].headers
