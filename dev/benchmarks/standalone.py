"""Spark's own standalone cluster on this machine: a master, and workers of one core each."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pyspark
import requests

from lakeferry.local import spark
from stacks.assets import build_glue_zip

_START_SECONDS: Final = 60
#: An executor has Spark's default of 1 GiB.
_WORKER_MEMORY: Final = "2g"


@contextmanager
def start_cluster(workers: int) -> Iterator[dict[str, str]]:
    """Start the cluster and yield the environment in which the job runs on it. Worker n and its executors use
    core n only.

    Raises TimeoutError when the workers don't register.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lakeferry-cluster-")))
        port = _find_free_port()
        page = _find_free_port()
        master = f"spark://127.0.0.1:{port}"
        before = dict(os.environ)
        try:
            spark.prepare(master=master, code=build_glue_zip)
            environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        finally:
            os.environ.clear()
            os.environ.update(before)
        program = [str(Path(pyspark.__file__).parent / "bin" / "spark-class")]
        # The daemons don't get the options of the job's own JVM, such as the archive of classes.
        daemons = {name: value for name, value in environment.items() if name != "SPARK_SUBMIT_OPTS"}
        commands = [
            [
                *program,
                "org.apache.spark.deploy.master.Master",
                *_build_address_options(port),
                "--webui-port",
                str(page),
            ]
        ]
        for core in range(workers):
            worker = [
                "org.apache.spark.deploy.worker.Worker",
                *_build_address_options(0),
                "--webui-port",
                "0",
                "-c",
                "1",
                "-m",
                _WORKER_MEMORY,
            ]
            commands.append(
                ["taskset", "-c", str(core), *program, *worker, "-d", str(folder / str(core)), master]
            )
        for number, command in enumerate(commands):
            log = stack.enter_context((folder / f"{number}.log").open("wb"))
            process = subprocess.Popen(command, env=daemons, stdout=log, stderr=subprocess.STDOUT)
            stack.callback(process.wait)
            stack.callback(process.terminate)
            if number == 0:
                _wait_for_workers(page, 0)
        _wait_for_workers(page, workers)
        yield environment


def _build_address_options(port: int) -> list[str]:
    return ["--host", "127.0.0.1", "--port", str(port)]


def _wait_for_workers(page: int, workers: int) -> None:
    """Wait until the master knows this many workers."""
    ends = time.monotonic() + _START_SECONDS
    while time.monotonic() < ends:
        try:
            if requests.get(f"http://127.0.0.1:{page}/json/", timeout=5).json()["aliveworkers"] >= workers:
                return
        except (requests.ConnectionError, requests.JSONDecodeError):
            pass
        time.sleep(0.2)
    raise TimeoutError(f"the Spark master knows fewer than {workers} workers after {_START_SECONDS} s")


def _find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
