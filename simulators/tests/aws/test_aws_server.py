"""The process: it comes up by itself, keeps to itself, says why it does not, and never stays behind."""

import contextlib
import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import boto3
import psutil
import pytest

from simulators.aws import settings
from simulators.aws.server import AWS_PYTHON, EmbeddedAws, EmbeddedAwsFailed
from simulators.core.processes import ROOT
from tests.support.aws_clients import PART, Clients
from tests.support.faults_kit import call

RUNS_ONE = """
import select, sys
from pathlib import Path
from simulators.aws.server import EmbeddedAws
with EmbeddedAws(python=Path(sys.argv[1]), state_dir=Path(sys.argv[2])) as aws:
    print(aws.pid, flush=True)
    # Not one blocking read: Python would see a signal that comes just before it only after it.
    while not select.select([sys.stdin], [], [], 0.1)[0]:
        pass
"""
WAITS_FOR_LOCK = "import fcntl, sys; fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX)"


def fake_python(tmp_path, script):
    """Stands in for the interpreter of .venv-aws, to be as ill-behaved as a test wants."""
    file = tmp_path / "python"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


def start_parent(state_dir, python=AWS_PYTHON, **environment):
    """A process that runs an embedded AWS until its standard input ends, in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", RUNS_ONE, str(python), str(state_dir)],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        process_group=0,
    )


def test_two_run_side_by_side_and_know_nothing_of_each_other():
    with EmbeddedAws() as one, EmbeddedAws() as other:
        bucket = Clients(one).new_bucket()
        assert one.url != other.url
        assert [listed_bucket["Name"] for listed_bucket in Clients(one).s3.list_buckets()["Buckets"]] == [
            bucket
        ]
        assert Clients(other).s3.list_buckets()["Buckets"] == []


def test_it_listens_on_loopback_only_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with EmbeddedAws() as aws:
        Clients(aws).new_bucket()
        process = psutil.Process(aws.pid)
        assert {
            connection.laddr.ip
            for connection in process.net_connections()
            if connection.status == psutil.CONN_LISTEN
        } == {"127.0.0.1"}
        assert list(tmp_path.iterdir())
    assert not process.is_running()
    assert list(tmp_path.iterdir()) == []


def test_a_later_one_has_what_an_earlier_one_kept(tmp_path):
    with EmbeddedAws(state_dir=tmp_path, iam=True) as aws:
        before = Clients(aws)
        bucket = before.new_bucket()
        database = before.new_database()
        before.s3.put_object(Bucket=bucket, Key="small", Body=b"1", Metadata={"run": "7"})
        etag = before.complete(bucket, "big", *before.upload(bucket, "big", [b"x" * PART, b"y"]))["ETag"]
        before.glue.create_table(DatabaseName=database, TableInput={"Name": "t", "Parameters": {"a": "1"}})
        before.secrets.create_secret(Name=database, SecretString="hidden")
        role = before.new_role(("s3:GetObject", "*"))
    with EmbeddedAws(state_dir=tmp_path, iam=True) as aws:
        after = Clients(aws)
        assert after.s3.head_object(Bucket=bucket, Key="small")["Metadata"] == {"run": "7"}
        big = after.assuming(role).s3.get_object(Bucket=bucket, Key="big")
        assert (big["ETag"], big["Body"].read()) == (etag, b"x" * PART + b"y")
        assert after.glue.get_table(DatabaseName=database, Name="t")["Table"]["Parameters"] == {"a": "1"}
        assert after.secrets.get_secret_value(SecretId=database)["SecretString"] == "hidden"


def test_a_state_directory_serves_one_at_a_time(tmp_path):
    with (
        EmbeddedAws(state_dir=tmp_path),
        pytest.raises(EmbeddedAwsFailed, match="is in use by another embedded AWS"),
    ):
        EmbeddedAws(state_dir=tmp_path).__enter__()


def test_a_body_that_was_lost_from_disk_is_never_served_as_whole(tmp_path):
    with EmbeddedAws(state_dir=tmp_path) as aws:
        clients = Clients(aws)
        bucket = clients.new_bucket()
        for key in ("shortened", "removed"):
            clients.s3.put_object(Bucket=bucket, Key=key, Body=bytes(3_000_000))
        (shortened,), (removed,) = tmp_path.rglob("shortened"), tmp_path.rglob("removed")
        os.truncate(shortened, 1_000_000)
        removed.unlink()
        with pytest.raises(http.client.IncompleteRead):
            call(aws.url, "GET", f"/{bucket}/shortened")
        assert call(aws.url, "GET", f"/{bucket}/removed")[0] == 500


@pytest.mark.parametrize("damaged", ["state/glue.json", "s3/000000000000/bucket/key.meta.json"])
def test_a_damaged_state_directory_is_named_and_kept(tmp_path, damaged):
    file = tmp_path / damaged
    file.parent.mkdir(parents=True)
    file.write_text('{"cut off')
    with pytest.raises(EmbeddedAwsFailed, match=rf"{file.name} is damaged .*Restore it, or delete"):
        EmbeddedAws(state_dir=tmp_path).__enter__()
    assert file.read_text() == '{"cut off'


def test_a_taken_port_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EmbeddedAwsFailed, match=rf"port {port} can't be had .*Use another, or 0"):
            EmbeddedAws(port=port).__enter__()


def test_without_its_environment_it_says_how_to_make_it(tmp_path):
    with pytest.raises(EmbeddedAwsFailed, match="Run `make setup`"):
        EmbeddedAws(python=tmp_path / "none").__enter__()


def test_what_it_logged_last_is_reported_where_it_dies(tmp_path):
    python = fake_python(tmp_path, "echo out of luck >&2; exit 7")
    with pytest.raises(EmbeddedAwsFailed, match=r"ended with code 7.*\nout of luck"):
        EmbeddedAws(python=python).__enter__()


def test_all_of_it_is_killed_where_it_does_not_stop(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    child = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    script = (
        f"trap '' TERM; {{ echo up; exec sleep 1000; }} > {pipe} & echo '{{}}'; while :; do sleep 1; done"
    )
    with EmbeddedAws(python=fake_python(tmp_path, script), grace=0.1) as aws:
        process = psutil.Process(aws.pid)
        assert select.select([child], [], [], 30)[0]
        assert os.read(child, 9) == b"up\n"
    assert not process.is_running()
    assert select.select([child], [], [], 30)[0], "its child still holds the pipe"
    os.close(child)


def test_it_ends_with_a_parent_that_is_killed_and_keeps_its_state(tmp_path):
    with start_parent(tmp_path) as parent:
        assert parent.stdout.readline()
        parent.kill()
    # Its lock is given back when it ends, which no zombie can hide.
    subprocess.run([sys.executable, "-c", WAITS_FOR_LOCK, tmp_path / "lock"], timeout=30, check=True)
    assert list((tmp_path / "state").glob("*.json"))


def test_ctrl_c_stops_it(tmp_path):
    with start_parent(tmp_path) as parent:
        server = psutil.Process(int(parent.stdout.readline()))
        assert os.getpgid(server.pid) != parent.pid
        os.killpg(parent.pid, signal.SIGINT)
        parent.wait(30)
    assert not server.is_running()


def test_ctrl_c_while_it_starts_stops_it_and_leaves_nothing(tmp_path):
    """Whether the interrupt comes before or after it is known who was started: standard input ends either
    way.
    """
    pipe = tmp_path / "pipe"
    scratch = tmp_path / "scratch"
    os.mkfifo(pipe)
    scratch.mkdir()
    child = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    python = fake_python(tmp_path, f"exec 3> {pipe}; echo up >&3; exec cat")
    with start_parent(tmp_path, python, TMPDIR=str(scratch)) as parent:
        assert select.select([child], [], [], 30)[0]
        assert os.read(child, 9) == b"up\n"
        os.killpg(parent.pid, signal.SIGINT)
        parent.wait(30)
    assert select.select([child], [], [], 30)[0], "it still holds the pipe"
    assert list(scratch.iterdir()) == []
    os.close(child)


def test_started_manually_it_prints_one_line_and_ignores_the_environment():
    hostile = {
        "SERVICES": "sqs",
        "AUTH": "true",
        "GATEWAY_PORT": "1",
        "AWS_ENDPOINT_URL": "http://192.0.2.1",
        "MINISTACK_VERSION": "0.0.0",
    }
    command = [AWS_PYTHON, "-m", "simulators.aws", "--port", "0", "--json"]
    with (
        subprocess.Popen(command, cwd=ROOT, env={**os.environ, **hostile}, stdout=subprocess.PIPE) as server,
        contextlib.ExitStack() as at_the_end,
    ):
        at_the_end.callback(server.kill)
        result = json.loads(server.stdout.readline())
        client = boto3.client(
            "s3",
            endpoint_url=result["url"],
            region_name=result["region"],
            aws_access_key_id=result["access_key_id"],
            aws_secret_access_key=result["secret_access_key"],
        )
        assert client.list_buckets()["Buckets"] == []
        assert (
            json.loads(call(result["url"], path="/_ministack/health")[2])["version"]
            == settings.read_pinned_version()
        )
        server.terminate()
        assert server.stdout.read() == b""
        server.wait(30)
    assert (result["account"], result["ministack"], server.returncode) == (
        settings.ACCOUNT,
        settings.read_pinned_version(),
        0,
    )


def test_a_client_environment_holds_nothing_of_the_users_own_aws(aws):
    base = {
        "HOME": "/home/someone",
        "AWS_PROFILE": "production",
        "AWS_SESSION_TOKEN": "x",
        "AWS_ENDPOINT_URL_S3": "https://elsewhere",
    }
    environment = aws.server.environment(base)
    script = "import boto3; print(boto3.client('sts').get_caller_identity()['Account'])"
    answer = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60
    )
    assert answer.stdout == "000000000000\n", answer.stderr
    assert environment["HOME"] == "/home/someone"
    assert not environment.keys() & {"AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3"}


def test_an_exception_in_its_block_stops_it():
    processes = []

    def fail_inside(server):
        with server:
            processes.append(psutil.Process(server.pid))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_inside(EmbeddedAws())
    assert not processes[0].is_running()


def test_a_control_that_does_not_exist_is_named(aws):
    request = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with pytest.raises(urllib.error.HTTPError) as missing:
        request.open(f"{aws.server.url}/_simulator/nothing")
    with missing.value as answer:
        assert "GET /mail" in json.load(answer)["error"]
