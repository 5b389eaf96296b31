"""`python -m simulators.aws.athena.engine SOCKET`: runs queries, each in a process forked from this one, which is warm by then.

A connection to the socket is one query, in lines of JSON:

    in   {"environment": …, "query": …}: the caller's credentials and the address of AWS; the query (outcomes.Asked)
    out  {"accepted": "DML", "substatement": "SELECT", "pid": …}, or {"malformed": "why"} and that was all
    in   any line: go on
    out  {"state": "SUCCEEDED", "found": …}, or another state with a "reason"

It ends with its standard input.
"""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import socket
import sys
import threading
import traceback
from typing import IO, Any

import attrs
from sqlglot import exp

from simulators.aws.athena import catalog, executing, parsing
from simulators.aws.athena.outcomes import Asked, Cancelled, Failed, Malformed
from simulators.aws.athena.parsing import Utility


def main() -> None:
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forked ones
    catalog.warm()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(sys.argv[1])
        listener.listen(32)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            _fork(listener)


def _fork(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    with connection:
        if os.fork():
            return
        code = 1
        try:
            listener.close()
            threading.Thread(target=_end_with_stdin, daemon=True).start()
            with connection.makefile("rw", encoding="utf-8") as line:
                answer(line)
            code = 0
        except ConnectionError:  # whoever asked is gone
            pass
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)


def _end_with_stdin() -> None:
    """A query doesn't outlive the embedded AWS, whatever it computes."""
    select.select([sys.stdin], [], [])
    os._exit(1)


def answer(line: IO[str]) -> None:
    """One query, from its first line to its last."""
    given = json.loads(line.readline())
    os.environ.clear()
    os.environ.update(given["environment"])
    asked = Asked(**given["query"])
    try:
        statement = parsing.statement(asked.sql)
    except Malformed as malformed:
        _tell(line, {"malformed": str(malformed)})
        return
    kinds = ("UTILITY", "SHOW") if isinstance(statement, Utility) else ("DML", "SELECT")
    _tell(line, {"accepted": kinds[0], "substatement": kinds[1], "pid": os.getpid()})
    if line.readline():
        _tell(line, _ended(asked, statement))


def _ended(asked: Asked, statement: exp.Query | Utility) -> dict[str, Any]:
    try:
        return {"state": "SUCCEEDED", "found": attrs.asdict(executing.run(asked, statement))}
    except Failed as failed:
        return {"state": "FAILED", "reason": str(failed)}
    except Cancelled as cancelled:
        return {"state": "CANCELLED", "reason": str(cancelled)}
    except Exception as error:
        traceback.print_exc()
        return {"state": "FAILED", "reason": f"GENERIC_INTERNAL_ERROR: {type(error).__name__}: {error}"}


def _tell(line: IO[str], told: dict[str, Any]) -> None:
    line.write(json.dumps(told) + "\n")
    line.flush()


if __name__ == "__main__":
    main()
