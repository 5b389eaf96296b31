"""Readers that nobody here wrote attach to Tableflow's catalog with a Tableflow API key: PyIceberg and
DuckDB.
"""

import itertools
import json
import os
import subprocess
import sys

import pytest
import requests
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import ForbiddenError, NoSuchTableError

from simulators.confluent.server import ConfluentCloud
from simulators.confluent.tableflow_lake import Lake as VendorLake
from simulators.tests.confluent.confluent_lake import Lake
from tests.support.aws_clients import policy
from tests.support.confluent_kit import LONG, Organization

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def cloud(aws):
    vendor = VendorLake(aws.server.url, aws.server.region, "test", "test")
    with ConfluentCloud(seed=17, start=1_793_610_000, region=aws.server.region, lake=vendor) as running:
        yield running


@pytest.fixture(scope="module")
def lake(cloud, aws):
    made = Lake(Organization(cloud), aws)
    made.flow_as()
    assert made.enable()["status"]["phase"] == "RUNNING"
    made.topic("managed")
    made.datagen("managed")
    assert made.enable("managed", storage={"kind": "Managed"})["status"]["phase"] == "RUNNING"
    connector = f"/connect/v1/environments/{made.environment}/clusters/{made.id}/connectors"
    for name in ("stock_trades", "managed"):
        made.org.control.delete(f"{connector}/{name}", 200)
    cloud.advance(600)
    made.read()
    return made


def uri(lake):
    return f"{lake.cloud.catalog_url}/iceberg/catalog/organizations/{lake.org.id}/environments/{lake.environment}"


def credential(lake):
    return lake.flow._session.auth


def reader(lake, key=None, **more):
    """PyIceberg's client of REST catalogs, with the lake's Tableflow key or another."""
    server = {"oauth2-server-uri": f"{uri(lake)}/v1/oauth/tokens"}
    return RestCatalog(
        "tableflow",
        uri=uri(lake),
        credential=":".join(key or credential(lake)),
        scope="catalog",
        **server,
        **more,
    )


def own_aws(aws):
    keys = {"s3.access-key-id": "test", "s3.secret-access-key": "test", "s3.region": aws.server.region}
    return {"s3.endpoint": aws.server.url, **keys}


def test_pyiceberg_reads_a_table_in_the_customers_bucket(lake, aws):
    catalog = reader(lake, **own_aws(aws))
    assert catalog.list_namespaces() == [(lake.id,)]
    assert sorted(catalog.list_tables(lake.id)) == [(lake.id, "managed"), (lake.id, "stock_trades")]
    rows = catalog.load_table((lake.id, "stock_trades")).scan().to_arrow()
    assert len(rows) == lake.produced()
    assert catalog.table_exists((lake.id, "stock_trades"))
    assert not catalog.table_exists((lake.id, "nothing"))
    with pytest.raises(NoSuchTableError):
        catalog.load_table((lake.id, "nothing"))


def test_pyiceberg_reads_managed_storage_with_vended_credentials(lake):
    table = reader(lake).load_table((lake.id, "managed"))
    assert len(table.scan().to_arrow()) == lake.produced("managed")
    assert table.io.properties["s3.access-key-id"] != "test"


def test_vended_credentials_read_only_their_table(lake, aws):
    table = reader(lake).load_table((lake.id, "managed"))
    properties = table.io.properties
    names = ("s3.access-key-id", "s3.secret-access-key", "s3.session-token")
    given = dict(
        zip(
            ("AccessKeyId", "SecretAccessKey", "SessionToken"),
            (properties[name] for name in names),
            strict=True,
        )
    )
    s3 = type(aws)(aws.server, given).s3
    bucket = table.location().split("/")[2]
    key = table.metadata_location.removeprefix(f"s3://{bucket}/")
    assert s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    for call, arguments in (
        (s3.put_object, {"Bucket": bucket, "Key": key, "Body": b""}),
        (s3.get_object, {"Bucket": lake.bucket, "Key": key}),
        (s3.get_object, {"Bucket": bucket, "Key": "elsewhere"}),
    ):
        with pytest.raises(s3.exceptions.ClientError, match="AccessDenied"):
            call(**arguments)


def test_own_buckets_never_vend(lake):
    session = requests.post(f"{uri(lake)}/v1/oauth/tokens", data=form(lake), timeout=10).json()[
        "access_token"
    ]
    headers = {"Authorization": f"Bearer {session}", "X-Iceberg-Access-Delegation": "vended-credentials"}
    answer = requests.get(
        f"{uri(lake)}/v1/namespaces/{lake.id}/tables/stock_trades", headers=headers, timeout=10
    ).json()
    assert answer["config"] == {}
    assert answer["metadata"]["format-version"] == 2


def form(lake, **changed):
    key, secret = credential(lake)
    return {
        "grant_type": "client_credentials",
        "client_id": key,
        "client_secret": secret,
        "scope": "catalog",
    } | changed


def test_tokens(lake):
    url = f"{uri(lake)}/v1/oauth/tokens"
    cloud_key = lake.cloud.credentials
    wrong = [
        ({"client_secret": "wrong"}, 401, "invalid_client"),
        (
            {"client_id": cloud_key["cloud_api_key"], "client_secret": cloud_key["cloud_api_secret"]},
            401,
            "invalid_client",
        ),
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
    ]
    for changed, status, error in wrong:
        answer = requests.post(url, data=form(lake, **changed), timeout=10)
        assert (answer.status_code, answer.json()["error"]) == (status, error)
    by_header = requests.post(
        url, data={"grant_type": "client_credentials"}, auth=credential(lake), timeout=10
    )
    assert by_header.json()["expires_in"] == 3600


def test_a_session_ends(lake):
    url = f"{uri(lake)}/v1/config"
    session = requests.post(f"{uri(lake)}/v1/oauth/tokens", data=form(lake), timeout=10).json()[
        "access_token"
    ]
    headers = {"Authorization": f"Bearer {session}"}
    assert requests.get(url, headers=headers, timeout=10).status_code == 200
    lake.cloud.advance(LONG + 1)
    ended = requests.get(url, headers=headers, timeout=10)
    assert (ended.status_code, ended.json()["error"]["type"]) == (401, "NotAuthorizedException")
    assert requests.get(url, timeout=10).status_code == 401
    assert len(reader(lake).list_namespaces()) == 1, "and one can log in again"


def test_a_reader_sees_what_its_role_lets_it_see(lake):
    account = lake.org.account("reader")
    client = lake.org.tableflow(account)
    catalog = reader(lake, client._session.auth)
    assert catalog.list_namespaces() == []
    lake.org.bind(account, "DeveloperRead", f"{lake.cluster['metadata']['resource_name']}/topic=managed")
    lake.cloud.advance(LONG)
    catalog = reader(lake, client._session.auth)
    assert catalog.list_tables(lake.id) == [(lake.id, "managed")]


def test_nobody_writes(lake, aws):
    catalog = reader(lake, **own_aws(aws))
    with pytest.raises((ForbiddenError, NotImplementedError)):
        catalog.drop_table((lake.id, "managed"))
    session = requests.post(f"{uri(lake)}/v1/oauth/tokens", data=form(lake), timeout=10).json()[
        "access_token"
    ]
    headers = {"Authorization": f"Bearer {session}"}
    answer = requests.delete(
        f"{uri(lake)}/v1/namespaces/{lake.id}/tables/managed", headers=headers, timeout=10
    )
    assert answer.status_code == 403


def test_a_customers_policy_still_rules(lake, aws):
    """Who isn't let at the customer's bucket reads nothing there, whatever the catalog says."""
    nothing = policy({"Effect": "Deny", "Action": "*", "Resource": "*"})
    aws.iam.create_user(UserName="outsider")
    aws.iam.put_user_policy(UserName="outsider", PolicyName="none", PolicyDocument=nothing)
    keys = aws.iam.create_access_key(UserName="outsider")["AccessKey"]
    own = own_aws(aws) | {
        "s3.access-key-id": keys["AccessKeyId"],
        "s3.secret-access-key": keys["SecretAccessKey"],
    }
    table = reader(lake, **own).load_table((lake.id, "stock_trades"))
    with pytest.raises(OSError, match=r"ACCESS_DENIED|AccessDenied"):
        table.scan().to_arrow()


@pytest.fixture
def asking(lake, aws):
    """`lakeferry query --catalog tableflow` as a process, with a secret that holds the reader's key."""
    key, secret = credential(lake)
    fields = {"apiKey": key, "apiSecret": secret, "catalog.uri": uri(lake), "kafka.cluster.id": lake.id}
    name = f"tableflow-{next(_numbers)}"
    secrets = aws.client("secretsmanager")
    secrets.create_secret(Name=name, SecretString=json.dumps(fields))
    given = {"LAKEFERRY_BUCKET": "any", "LAKEFERRY_DATABASE": lake.id, "LAKEFERRY_TABLEFLOW_SECRET": name}

    def ask(sql, **changed):
        command = [sys.executable, "-m", "lakeferry", "query", "--catalog", "tableflow", "--json", sql]
        environment = {"PATH": os.environ["PATH"]} | aws.server.environment() | given | changed
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
        assert secret not in done.stdout + done.stderr
        return done.returncode, json.loads(done.stdout)

    return ask


def test_lakeferry_query_reads_both_kinds_of_storage(lake, asking):
    for table in ("stock_trades", "managed"):
        code, answer = asking(f"SELECT count(*) FROM {table}")
        assert (code, answer["rows"]) == (0, [[lake.produced(table)]])


def test_lakeferry_query_logs_in_again_when_the_session_ends(lake, asking, cloud):
    """The second question of the same session is refused, as it would be an hour later."""
    cloud.faults.rule({"fault": "error", "status": 401, "path": "*/tables/*", "body": json.dumps(ENDED)})
    code, answer = asking("SELECT count(*) FROM managed")
    trace = cloud.faults.state()["trace"]
    cloud.faults.clear()
    assert (code, answer["rows"]) == (0, [[lake.produced("managed")]])
    assert sum("oauth/tokens" in exchange["call"] for exchange in trace) >= 2


ENDED = {"error": {"message": "Session expired", "type": "NotAuthorizedException", "code": 401}}


def test_lakeferry_query_tells_what_is_wrong_with_the_key(lake, asking):
    code, answer = asking("SELECT 1", LAKEFERRY_TABLEFLOW_SECRET="nowhere")
    assert (code, answer["code"]) == (1, "QUERY-TABLEFLOW-KEY")
    assert "ResourceNotFoundException" in answer["message"]
    code, answer = asking("SELECT 1", LAKEFERRY_TABLEFLOW_SECRET="")
    assert (code, answer["code"]) == (2, "QUERY-TABLEFLOW-SECRET")
    code, answer = asking("SELECT * FROM unheard_of")
    assert (code, answer["code"]) == (2, "QUERY")
    code, answer = asking("DROP TABLE managed")
    assert (code, answer["code"]) == (2, "QUERY-READ-ONLY")
