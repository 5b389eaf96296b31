"""A loopback HTTP server that answers what a test scripts, and keeps the requests."""

from __future__ import annotations

import json
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit


class Sent(NamedTuple):
    """A request: `route` is "METHOD /path", without the query."""

    route: str
    query: dict
    headers: dict
    body: object


class Scripted:
    """`answers` maps a route to an answer: (status, body), (status, body, headers), a function of Sent, or a
    list of these.

    Each answer of a list is given once, and the last one for ever. `reset`, `cut_short` and others break the
    connection.
    """

    def __init__(self, answers=None):
        self.answers = dict(answers or {})
        self.sent = []
        script = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def serve(self):
                length = int(self.headers.get("Content-Length") or 0)
                content = self.rfile.read(length)
                where = urlsplit(self.path)
                sent = Sent(
                    f"{self.command} {where.path}",
                    dict(parse_qsl(where.query, keep_blank_values=True)),
                    {name.lower(): value for name, value in self.headers.items()},
                    self.read(content) if content else None,
                )
                script.sent.append(sent)
                answer = script.next_answer(sent)
                if callable(answer):
                    answer = answer(self)
                if answer is not None:
                    self.reply(*answer)

            def read(self, content):
                is_form = self.headers.get("Content-Type", "").endswith("x-www-form-urlencoded")
                return dict(parse_qsl(content.decode())) if is_form else json.loads(content)

            def reply(self, status, body=None, headers=None):
                content = (
                    body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
                )
                self.send_response_only(status)
                usual = {"X-Request-Id": "req-1", "Date": self.date_time_string()}
                for name, value in {**usual, **(headers or {})}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *arguments):
                pass

        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"):
            setattr(Handler, f"do_{method}", Handler.serve)

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *where):
                """Ignore errors: clients of these tests break connections on purpose."""

        self._server = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self):
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._server.shutdown()
        self._thread.join(60)
        self._server.server_close()

    def next_answer(self, sent):
        answer = self.answers.get(sent.route, (404, {"errors": [{"detail": "no such thing"}]}))
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        if callable(answer) and not getattr(answer, "on_connection", False):
            answer = answer(sent)
        return answer

    @property
    def routes(self):
        return [sent.route for sent in self.sent]

    def writes(self):
        return [sent for sent in self.sent if not sent.route.startswith("GET")]


def on_connection(answer):
    """Mark an answer that uses the connection itself."""
    answer.on_connection = True
    return answer


@on_connection
def reset(handler):
    """Reset the connection instead of answering."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


@on_connection
def cut_short(handler):
    """Send fewer bytes than the answer's length."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100")
    handler.end_headers()
    handler.wfile.write(b'{"data": [')
    handler.close_connection = True


def held(event):
    """Return an answer whose body is sent once `event` is set."""

    @on_connection
    def answer(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "2")
        handler.end_headers()
        event.wait(60)

    return answer


def dripping(pieces, each=lambda: None):
    """Return an answer with a body in many small pieces. `each` is called after each piece."""

    @on_connection
    def answer(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(pieces)))
        handler.end_headers()
        for piece in pieces:
            each()
            try:
                handler.wfile.write(bytes([piece]))
                handler.wfile.flush()
            except OSError:
                return

    return answer
