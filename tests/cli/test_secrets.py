"""`lakeferry secrets set` checks keys at the vendors' simulators, and stores them in Secrets Manager only."""

from __future__ import annotations

import json
import os
from pathlib import Path

import boto3
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from typer.testing import CliRunner

from lakeferry.__main__ import app
from lakeferry.cli import app as frame
from lakeferry.credentials import confluent, snowflake, store
from lakeferry.deployment.context import Addresses, DeploymentContext
from lakeferry.rehearsal.harness import talk
from lambdas import contract
from lambdas.shared.clock import Deadline, SystemClock
from lambdas.shared.http import Session
from lambdas.shared.redaction import ApiKey, Secret
from lambdas.snowflake import keypair, sql
from lambdas.snowflake.client import Login
from lambdas.snowflake.client import Snowflake as SnowflakeClient
from simulators.aws.server import EmbeddedAws
from simulators.confluent.server import ConfluentCloud
from simulators.core import control
from simulators.snowflake.server import Snowflake
from tests.support import shipped
from tests.support.lake import ROOT
from tests.support.promises import promised

DEV = shipped.load("dev").deployment
CLOUD_KEY = DEV.confluent.cloud_key_secret
DEPLOYER = DEV.snowflake.key_secret


@pytest.fixture(scope="module")
def aws():
    with EmbeddedAws() as aws:
        yield aws


@pytest.fixture
def cloud():
    with ConfluentCloud() as cloud:
        yield cloud


@pytest.fixture(scope="module")
def account():
    with Snowflake(time_scale=1.0, name=DEV.snowflake.account) as account:
        yield account


@pytest.fixture
def secrets(aws, monkeypatch):
    """Lead to an AWS without any of our secrets, and return its client of Secrets Manager."""
    for name, value in aws.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv(frame.STAGE_VARIABLE, raising=False)
    client = boto3.client("secretsmanager")
    for name in (CLOUD_KEY, DEPLOYER):
        if any(
            secret["Name"] == name
            for secret in client.list_secrets(IncludePlannedDeletion=True)["SecretList"]
        ):
            client.delete_secret(SecretId=name, ForceDeleteWithoutRecovery=True)
    return client


@pytest.fixture
def organization(secrets, cloud, monkeypatch):
    monkeypatch.setenv(contract.CONFLUENT_URL, cloud.url)
    return Organization(cloud)


@pytest.fixture
def snowflake_account(secrets, account, monkeypatch):
    monkeypatch.setenv(contract.SNOWFLAKE_URL, account.url)
    env = Account(account)
    env.run(f"DROP USER IF EXISTS {DEV.snowflake.user}")
    env.run(f"CREATE ROLE IF NOT EXISTS {DEV.snowflake.role}")
    env.run(f"CREATE USER {DEV.snowflake.user} TYPE=SERVICE DEFAULT_ROLE={DEV.snowflake.role}")
    env.run(f"GRANT ROLE {DEV.snowflake.role} TO USER {DEV.snowflake.user}")
    return env


class Organization:
    """Acts as an admin of the simulated Confluent organization."""

    def __init__(self, cloud):
        self.cloud = cloud
        given = cloud.credentials
        self.id = given["organization_id"]
        self.admin = ApiKey(given["cloud_api_key"], Secret(given["cloud_api_secret"]))
        clock = SystemClock()
        self.vendor = confluent.Confluent(
            Session(Deadline(clock, clock.time() + 600)), clock, self.admin, cloud.url
        )

    def account(self, name, role="OrganizationAdmin"):
        made = self.vendor.cloud.post("/iam/v2/service-accounts", {"display_name": name})["id"]
        if role:
            whole = f"crn://confluent.cloud/organization={self.id}"
            binding = {"principal": f"User:{made}", "role_name": role, "crn_pattern": whole}
            self.vendor.cloud.post("/iam/v2/role-bindings", binding)
        return made

    def key(self, owner, resource=None, *, old=True):
        """Create an API key. `old`: let time pass, so that the key and its owner's roles are in effect."""
        wanted = {"owner": {"id": owner}, **({"resource": resource} if resource else {})}
        made = self.vendor.cloud.post("/iam/v2/api-keys", {"spec": wanted})
        if old:
            control.call(self.cloud.url, "POST", "/clock", {"advance": 3600})
        return ApiKey(made["id"], Secret(made["spec"]["secret"]))

    def cluster_key(self, owner):
        environment = self.vendor.cloud.post("/org/v2/environments", {"display_name": "lake"})["id"]
        spec = {
            "display_name": "events", "availability": "SINGLE_ZONE", "cloud": "AWS", "region": "eu-west-1",
            "config": {"kind": "Standard"},
            "environment": {"id": environment, "related": "", "resource_name": ""},
        }  # fmt: skip
        cluster = self.vendor.cloud.post("/cmk/v2/clusters", {"spec": spec})["id"]
        control.call(self.cloud.url, "POST", "/clock", {"advance": 3600})
        return cluster, self.key(owner, {"id": cluster, "kind": "Cluster"})


class Account:
    """Acts as an admin of the simulated Snowflake account."""

    def __init__(self, account):
        given = account.credentials
        clock = SystemClock()
        pair = keypair.load(Secret(Path(given["private_key_file"]).read_text()))
        login = Login(given["account"], given["user"], given["role"])
        self.client = SnowflakeClient(
            Session(Deadline(clock, clock.time() + 600)), clock, login, pair, account.url
        )

    def run(self, statement):
        return self.client.run(sql.Sql(statement.rstrip(";")))

    def set_key(self, pair):
        self.run(f"ALTER USER {DEV.snowflake.user} SET RSA_PUBLIC_KEY='{pair.public}'")


def secrets_set(*words, given=""):
    return CliRunner().invoke(app, ["secrets", "set", *words, "--json"], input=given)


def held(client, name, label="AWSCURRENT"):
    return json.loads(client.get_secret_value(SecretId=name, VersionStage=label)["SecretString"])


def lines(key):
    return f"{key.id}\n{key.secret.reveal()}\n"


# --- Confluent


def test_a_cloud_key_is_checked_and_stored_as_the_functions_read_it(organization, secrets):
    owner = organization.account("deployer")
    key = organization.key(owner)
    answer = secrets_set("confluent", given=lines(key))
    assert answer.exit_code == 0, answer.output
    document = json.loads(answer.stdout)
    assert document["key"] == {"id": key.id, "scope": "cloud", "owner": owner, "roles": ["OrganizationAdmin"]}
    assert held(secrets, CLOUD_KEY) == {
        "apiKey": key.id,
        "apiSecret": key.secret.reveal(),
        "serviceAccountId": owner,
    }
    described = secrets.describe_secret(SecretId=CLOUD_KEY)
    assert (document["arn"], document["changed"], document["secret"]) == (described["ARN"], True, CLOUD_KEY)
    assert key.secret.reveal() not in answer.output
    assert (
        DeploymentContext(shipped.load("dev"), Addresses(confluent=organization.cloud.url))
        .confluent()
        .organization_id
    )


def test_the_document_is_the_documented_one(organization):
    document = json.loads(
        secrets_set("confluent", given=lines(organization.key(organization.account("a")))).stdout
    )
    assert document.keys() == promised("secrets set")


def test_the_previous_value_and_fields_that_somebody_added_are_kept(organization, secrets):
    first, second = (organization.key(organization.account(name)) for name in ("one", "two"))
    before = {"apiKey": first.id, "apiSecret": first.secret.reveal(), "resourceId": "lkc-1", "note": "ours"}
    secrets.create_secret(Name=CLOUD_KEY, SecretString=json.dumps(before))
    assert secrets_set("confluent", given=lines(second)).exit_code == 0
    now = held(secrets, CLOUD_KEY)
    assert (now["apiKey"], now["note"], "resourceId" in now) == (second.id, "ours", False)
    assert held(secrets, CLOUD_KEY, "AWSPREVIOUS") == before


def test_the_same_key_again_changes_nothing(organization, secrets):
    key = organization.key(organization.account("deployer"))
    first, again = (json.loads(secrets_set("confluent", given=lines(key)).stdout) for _ in range(2))
    assert (first["changed"], again["changed"], again["version"]) == (True, False, first["version"])


#: Formats of a key's text, made from the key, with the option that they need.
FORMS = {
    "two lines": (lines, ()),
    "as Confluent's tool prints it": (
        lambda key: json.dumps({"api_key": key.id, "api_secret": key.secret.reveal()}),
        (),
    ),
    "as a secret of ours": (lambda key: json.dumps({"apiKey": key.id, "apiSecret": key.secret.reveal()}), ()),
    "the secret alone": (lambda key: key.secret.reveal() + "\n", "--key-id"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_key_is_accepted_in_several_formats(organization, secrets, form):
    key = organization.key(organization.account("deployer"))
    text, option = FORMS[form]
    words = (option, key.id) if option else ()
    assert secrets_set("confluent", *words, given=text(key)).exit_code == 0
    assert held(secrets, CLOUD_KEY)["apiKey"] == key.id


ID = "ABCDEFGH12345678"
SECRET = "s" * 64
#: The input, the error code, and what the message contains.
MALFORMED = {
    "nothing": ("", "SECRETS-INPUT", "nothing was given"),
    "one line": (f"{ID}\n", "SECRETS-INPUT", "1 lines"),
    "JSON of something else": ('{"user": "x"}', "SECRETS-INPUT", "apiKey"),
    "the wrong way round": (f"{SECRET}\n{ID}\n", "SECRETS-SHAPE", "wrong way round"),
    "an id cut short": (f"{ID[:9]}\n{SECRET}\n", "SECRETS-SHAPE", "9 characters"),
    "a secret cut short": (f"{ID}\n{SECRET[:20]}\n", "SECRETS-SHAPE", "20 characters"),
    "quotes": (f'{ID}\n"{SECRET}"\n', "SECRETS-SHAPE", "quotes"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_input_is_reported_before_any_vendor_is_called(secrets, case):
    given, code, expected_message = MALFORMED[case]
    answer = secrets_set("confluent", given=given)
    document = json.loads(answer.stdout)
    assert (answer.exit_code, document["code"]) == (2, code)
    assert expected_message in document["message"]
    assert SECRET not in answer.output
    assert not secrets.list_secrets()["SecretList"]


def wrong_secret(env):
    key = env.key(env.account("deployer"))
    return ApiKey(key.id, Secret("w" * 64)), "SECRETS-REFUSED", "doesn't accept"


def cluster_key(env):
    _, key = env.cluster_key(env.account("deployer"))
    return key, "SECRETS-REFUSED", "doesn't accept"


def cluster_key_beside_a_cloud_key(env):
    stored(env.admin)
    cluster, key = env.cluster_key(env.account("deployer"))
    return key, "SECRETS-CLUSTER-KEY", f"is for {cluster}"


def wrong_secret_beside_a_cloud_key(env):
    stored(env.admin)
    key = env.key(env.account("deployer"))
    return ApiKey(key.id, Secret("w" * 64)), "SECRETS-REFUSED", "its secret is wrong"


def unknown_beside_a_cloud_key(env):
    stored(env.admin)
    return ApiKey(ID, Secret(SECRET)), "SECRETS-REFUSED", "has no API key"


def tableflow_key(env):
    return (
        env.key(env.account("deployer"), {"id": "tableflow", "kind": "Tableflow"}),
        "SECRETS-CLUSTER-KEY",
        "Tableflow",
    )


def weak_role(env):
    return env.key(env.account("deployer", "MetricsViewer")), "SECRETS-SCOPE", ""


def no_role(env):
    return env.key(env.account("deployer", "")), "SECRETS-SCOPE", ""


def stored(key):
    fields = {"apiKey": key.id, "apiSecret": key.secret.reveal()}
    boto3.client("secretsmanager").create_secret(Name=CLOUD_KEY, SecretString=json.dumps(fields))


WRONG = (
    wrong_secret, cluster_key, cluster_key_beside_a_cloud_key, wrong_secret_beside_a_cloud_key,
    unknown_beside_a_cloud_key, tableflow_key, weak_role, no_role,
)  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.__name__)
def test_an_unsuitable_key_is_identified_and_not_stored(organization, secrets, case):
    key, code, expected_message = case(organization)
    before = {
        secret["Name"]: held(secrets, secret["Name"]) for secret in secrets.list_secrets()["SecretList"]
    }
    answer = secrets_set("confluent", given=lines(key))
    document = json.loads(answer.stdout)
    assert (answer.exit_code, document["code"]) == (1, code), document
    assert expected_message in document["message"]
    assert document["hint"]
    assert key.secret.reveal() not in answer.output
    assert {
        secret["Name"]: held(secrets, secret["Name"]) for secret in secrets.list_secrets()["SecretList"]
    } == before


class VendorClock(SystemClock):
    """Advances the vendor's time and its own when somebody sleeps."""

    def __init__(self, url):
        self.url = url
        self.ahead = 0.0

    def time(self):
        return super().time() + self.ahead

    def sleep(self, seconds):
        self.ahead += seconds
        control.call(self.url, "POST", "/clock", {"advance": seconds})


def test_a_key_that_was_made_just_now_is_waited_for(organization, secrets, quiet_output):
    owner = organization.account("deployer")
    key = organization.key(owner, old=False)
    url = organization.cloud.url
    ctx = DeploymentContext(shipped.load("dev"), Addresses(confluent=url), VendorClock(url))
    assert confluent.verify(quiet_output, ctx, key, wait=1200).id == owner
    assert ctx.clock.ahead > 0


def test_a_secret_that_is_scheduled_for_deletion_is_not_overwritten(organization, secrets):
    stored(organization.admin)
    secrets.delete_secret(SecretId=CLOUD_KEY)
    answer = secrets_set("confluent", given=lines(organization.key(organization.account("a"))))
    document = json.loads(answer.stdout)
    assert (answer.exit_code, document["code"]) == (1, "SECRETS-DELETED")
    assert "restore-secret" in document["hint"]


def test_on_a_terminal_the_secret_is_asked_for_and_not_shown(organization, secrets):
    key = organization.key(organization.account("deployer"))
    typed = [("id: ", f"{key.id}\n"), ("(not shown): ", f"{key.secret.reveal()}\n")]
    code, shown = talk(["secrets", "set", "confluent"], os.environ, typed, ROOT)
    assert code == 0, shown
    assert key.id in shown
    assert key.secret.reveal() not in shown
    assert held(secrets, CLOUD_KEY)["apiSecret"] == key.secret.reveal()


# --- Snowflake


def pem(key, *, passphrase=None):
    hidden = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, hidden).decode()


@pytest.fixture(scope="module")
def rsa_key():
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture(scope="module")
def pair(rsa_key):
    return keypair.load(Secret(pem(rsa_key)))


def test_a_private_key_is_checked_by_a_login_and_stored_as_the_functions_read_it(
    snowflake_account, secrets, pair
):
    snowflake_account.set_key(pair)
    answer = secrets_set("snowflake", given=pair.private_pem.reveal())
    assert answer.exit_code == 0, answer.output
    document = json.loads(answer.stdout)
    now = held(secrets, DEPLOYER)
    result = {
        "fingerprint": pair.fingerprint,
        "user": "LAKEFERRY",
        "account": DEV.snowflake.account,
        "state": "current",
    }
    assert document["key"] == result
    assert (now["privateKey"], now["user"], now["account"]) == (
        pair.private_pem.reveal(),
        "LAKEFERRY",
        DEV.snowflake.account,
    )
    assert "PRIVATE KEY" not in answer.output
    addresses = Addresses(snowflake=os.environ[contract.SNOWFLAKE_URL])
    who = DeploymentContext(shipped.load("dev"), addresses).snowflake().login.user
    assert who == "LAKEFERRY"


def test_a_key_with_a_passphrase_is_stored_without_it(snowflake_account, secrets, rsa_key, pair):
    snowflake_account.set_key(pair)
    secrets.create_secret(Name=DEPLOYER, SecretString=json.dumps({"passphrase": "old", "note": "ours"}))
    given = json.dumps({"privateKey": pem(rsa_key, passphrase=b"open sesame"), "passphrase": "open sesame"})
    assert secrets_set("snowflake", given=given).exit_code == 0
    now = held(secrets, DEPLOYER)
    assert ("passphrase" in now, now["note"]) == (False, "ours")
    assert "ENCRYPTED" not in now["privateKey"]


@pytest.mark.parametrize(
    ("text", "expected_message"),
    [
        ("hello", "can't be read"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----", "can't be read"),
        ("ssh-rsa AAAA", "public key"),
        ("-----BEGIN PUBLIC KEY-----\nMIIE\n-----END PUBLIC KEY-----", "public key"),
        (pem(ec.generate_private_key(ec.SECP256R1())), "not an RSA key"),
    ],
)
def test_an_unreadable_private_key_is_reported_before_snowflake_is_called(secrets, text, expected_message):
    answer = secrets_set("snowflake", given=text)
    document = json.loads(answer.stdout)
    assert (answer.exit_code, document["code"]) == (2, "SECRETS-PEM")
    assert expected_message in document["message"]
    assert document["hint"]


def test_a_passphrase_that_is_missing_or_wrong_is_reported(secrets, rsa_key):
    hidden = pem(rsa_key, passphrase=b"open sesame")
    missing = json.loads(secrets_set("snowflake", given=hidden).stdout)
    wrong = json.loads(
        secrets_set("snowflake", given=json.dumps({"privateKey": hidden, "passphrase": "x"})).stdout
    )
    assert (missing["code"], wrong["code"]) == ("SECRETS-PEM", "SECRETS-PEM")
    assert "none was given" in missing["message"]
    assert "passphrase is wrong" in wrong["message"]


def test_a_public_key_that_the_user_does_not_have_comes_with_the_statement_that_sets_it(
    snowflake_account, secrets, pair
):
    answer = secrets_set("snowflake", given=pair.private_pem.reveal())
    document = json.loads(answer.stdout)
    assert (answer.exit_code, document["code"]) == (1, "SECRETS-PUBLIC-KEY")
    assert not secrets.list_secrets()["SecretList"]
    snowflake_account.run(document["details"]["sql"])
    assert secrets_set("snowflake", given=pair.private_pem.reveal()).exit_code == 0


def test_the_statement_leaves_the_key_that_works_alone(snowflake_account, secrets, pair):
    snowflake_account.set_key(pair)
    secrets_set("snowflake", given=pair.private_pem.reveal())
    other = keypair.make()
    document = json.loads(secrets_set("snowflake", given=other.private_pem.reveal()).stdout)
    assert "SET RSA_PUBLIC_KEY_2=" in document["details"]["sql"]
    assert "so the user and the account are right" in document["why"]
    snowflake_account.run(document["details"]["sql"])
    assert secrets_set("snowflake", given=other.private_pem.reveal()).exit_code == 0
    assert held(secrets, DEPLOYER, "AWSPREVIOUS")["fingerprint"] == pair.fingerprint
    third = json.loads(secrets_set("snowflake", given=keypair.make().private_pem.reveal()).stdout)
    assert "SET RSA_PUBLIC_KEY=" in third["details"]["sql"], "the slot of the key that is not current"


def test_a_role_that_the_user_may_not_use_is_reported_as_that(snowflake_account, pair):
    snowflake_account.set_key(pair)
    snowflake_account.run(f"REVOKE ROLE {DEV.snowflake.role} FROM USER {DEV.snowflake.user}")
    document = json.loads(secrets_set("snowflake", given=pair.private_pem.reveal()).stdout)
    assert document["code"] == "SNF-ROLE"


def test_a_generated_pair_waits_until_an_admin_has_set_it(snowflake_account, secrets):
    made = json.loads(secrets_set("snowflake", "--generate").stdout)
    assert (made["ok"], made["key"]["state"]) == (True, "waiting")
    waiting = secrets_set("snowflake", "--generate")
    document = json.loads(waiting.stdout)
    assert (waiting.exit_code, document["code"], document["details"]["sql"]) == (
        5,
        "SECRETS-WAITING",
        made["sql"],
    )
    snowflake_account.run(made["sql"])
    done = json.loads(secrets_set("snowflake", "--generate").stdout)
    assert (done["ok"], done["key"]["state"], done["key"]["fingerprint"]) == (
        True,
        "current",
        made["key"]["fingerprint"],
    )
    assert held(secrets, DEPLOYER)["fingerprint"] == made["key"]["fingerprint"]
    stages = secrets.describe_secret(SecretId=DEPLOYER)["VersionIdsToStages"].values()
    assert store.GENERATED not in {label for labels in stages for label in labels}


def test_a_generated_pair_replaces_a_working_one_only_when_it_works(snowflake_account, secrets, pair):
    snowflake_account.set_key(pair)
    secrets_set("snowflake", given=pair.private_pem.reveal())
    made = json.loads(secrets_set("snowflake", "--generate").stdout)
    assert "SET RSA_PUBLIC_KEY_2=" in made["sql"]
    assert held(secrets, DEPLOYER)["fingerprint"] == pair.fingerprint
    snowflake_account.run(made["sql"])
    assert secrets_set("snowflake", "--generate").exit_code == 0
    assert held(secrets, DEPLOYER)["fingerprint"] == made["key"]["fingerprint"]
    assert held(secrets, DEPLOYER, "AWSPREVIOUS")["fingerprint"] == pair.fingerprint


def test_on_a_terminal_a_private_key_can_be_pasted_and_is_not_shown(
    snowflake_account, secrets, rsa_key, pair
):
    snowflake_account.set_key(pair)
    typed = [
        ("(not shown): ", pem(rsa_key, passphrase=b"open sesame")),
        ("passphrase (not shown): ", "open sesame\n"),
    ]
    code, shown = talk(["secrets", "set", "snowflake"], os.environ, typed, ROOT)
    assert code == 0, shown
    assert "PRIVATE" not in shown
    assert "sesame" not in shown
    assert held(secrets, DEPLOYER)["fingerprint"] == pair.fingerprint


def test_options_of_the_other_vendor_are_wrong_input(secrets):
    assert json.loads(secrets_set("confluent", "--generate").stdout)["code"] == "USAGE"
    assert json.loads(secrets_set("snowflake", "--key-id", ID).stdout)["code"] == "USAGE"


def test_a_stage_without_snowflake_has_no_key_for_it(secrets, quiet_output):
    import attrs

    plan = shipped.load("dev")
    ctx = DeploymentContext(attrs.evolve(plan, deployment=attrs.evolve(plan.deployment, snowflake=None)))
    with pytest.raises(Exception, match="has no"):
        snowflake.store(quiet_output, ctx)
