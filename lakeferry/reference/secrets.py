"""secrets.md: the fields of every secret that a deployment fills and rotates, and what the Terraform kickstarter calls them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lakeferry.reference import markdown
from lakeferry.reference.markdown import code
from lambdas import contract
from lambdas.confluent import secret_fields as confluent
from lambdas.rotation import versions
from lambdas.shared.redaction import ApiKey, Secret
from lambdas.snowflake import keypair
from lambdas.snowflake import secret_fields as snowflake

TITLE = "Secrets"
_INTRO = """\
Each key of a deployment has a secret of its own in Secrets Manager, one JSON object. A client connects with what stands there and
needs nothing else. The first fields are those of AWS's managed external secrets (types `ConfluentCloudApiKey` and
`SnowflakeKeyPairAuthentication`), so that AWS's own rotation could take over. The others have the names that clients of the
service read, among them those of the Terraform kickstarter of the same architecture.

A rotation changes the fields that hold the key and leaves all others as they are, also those that somebody added."""
_HEADS: Final = ["field", "", "what it is", "managed by AWS", "in the kickstarter"]
_SAME: Final = "the same"
_NONE: Final = "–"
_ABSENT: Final = "not there"
_KEY: Final = "changes"

#: What each field is, whether rotation changes it, its name for AWS, and in the kickstarter.
_CONFLUENT: Final[Mapping[str, tuple[str, str, str, str]]] = {
    "apiKey": ("The key's id.", _KEY, _SAME, "`sasl.username`, `api.key`"),
    "apiSecret": ("The key's secret.", _KEY, _SAME, "`sasl.password`, `api.key.secret`"),
    "serviceAccountId": ("Whose key it is, `sa-…`.", "", _SAME, _ABSENT),
    "resourceId": ("What it opens: `lkc-…`, `lsrc-…`, `aws.<region>`, `Tableflow`.", "", _SAME, _ABSENT),
    "environmentId": ("The environment, `env-…`.", "", _SAME, "`environment.id`"),
    "displayName": (
        "How the names of this secret's keys begin at Confluent; rotation adds `/` and its token.",
        "",
        _NONE,
        _ABSENT,
    ),
    "bootstrap.servers": ("Host and port of the brokers.", "", _NONE, _SAME),
    "security.protocol": ("Always `SASL_SSL`.", "", _NONE, _ABSENT),
    "sasl.mechanism": ("Always `PLAIN`.", "", _NONE, _ABSENT),
    "sasl.username": ("The key's id.", _KEY, _NONE, _SAME),
    "sasl.password": ("The key's secret.", _KEY, _NONE, _SAME),
    "schema.registry.url": ("Schema Registry's address.", "", _NONE, _SAME),
    "schema.registry.basic.auth.credentials.source": ("Always `USER_INFO`.", "", _NONE, _SAME),
    "schema.registry.basic.auth.user.info": ("Id and secret with a colon between them.", _KEY, _NONE, _SAME),
    "api.key": ("The key's id.", _KEY, _NONE, _SAME),
    "api.key.secret": ("The key's secret.", _KEY, _NONE, _SAME),
    "principal.id": ("The service account that statements run as.", "", _NONE, _SAME),
    "compute.pool.id": ("The compute pool that statements run on.", "", _NONE, _SAME),
    "organization.id": ("The organization, a UUID.", "", _NONE, _ABSENT),
    "environment.id": ("The environment, `env-…`.", "", _NONE, "the same, for Tableflow"),
    "endpoint": ("Flink's SQL gateway of the region.", "", _NONE, _ABSENT),
    "kafka.cluster.id": ("The Kafka cluster, which is the catalog's namespace.", "", _NONE, _SAME),
    "catalog.uri": ("Tableflow's Iceberg REST catalog.", "", _NONE, _ABSENT),
}
_SNOWFLAKE: Final[Mapping[str, tuple[str, str, str, str]]] = {
    "account": ("The account's identifier.", "", _SAME, "`snowflake_account_identifier`"),
    "user": ("The user, as `SHOW USERS` prints it.", "", _SAME, "`snowflake_service_user`"),
    "host": ("The account's address.", "", _NONE, _ABSENT),
    "role": ("The role that the user works in.", "", _NONE, _ABSENT),
    "warehouse": ("The warehouse that its queries run on.", "", _NONE, _ABSENT),
    "namespace": ("The database, or `database.schema`, of its queries.", "", _NONE, _ABSENT),
    "snowflake_account_identifier": ("The same as `account`.", "", _NONE, _SAME),
    "snowflake_service_user": ("The same as `user`.", "", _NONE, _SAME),
    "privateKey": (
        "The private key: PKCS#8, PEM, RSA with 3072 bits.",
        _KEY,
        _SAME,
        "`snowflake_rsa_private_key_1_pem`, `…_2_pem`",
    ),
    "publicKey": ("The public key, PEM.", _KEY, _SAME, "`rsa_public_key_1_pem`, `…_2_pem`"),
    "fingerprint": ("As `DESC USER` shows it.", _KEY, _NONE, _ABSENT),
    "snowflake_rsa_public_key_1_pem": ("The public key in one line, as `ALTER USER` takes it.", _KEY, _NONE, _SAME),
    "snowflake_rsa_private_key_1_pem": ("The private key's PEM in base64.", _KEY, _NONE, _SAME),
}
_NOTES: Final = """\
A private key that you stored yourself may have a passphrase, in the field `passphrase`. Keys that rotation makes have none. The
kickstarter's second pair and its `active_key_number` have no counterpart: a secret holds one key, and the replaced one stays
valid beside it."""
_SCHEDULE: Final = """\
The function's environment, and a tag. The days between two rotations are the secret's own schedule in Secrets Manager, {days}
unless the deployment file says otherwise; they have to be more than the grace."""
_READERS: Final = """\
A reader may keep a value for as long as the grace lasts, and never meets a key that doesn't work any more. Where Secrets Manager
never heard of a rotation's end, the grace counts from {life:g} day after the new value was made. A replaced key is not revoked
while a rotation is under way. How to rotate by hand, and what to do when a key has leaked: [Rotate keys](../how-to/rotate.md)."""


_METRICS: Final = [
    ("`KeyAgeDays`", "days since the value that readers get was stored", "above `alerts.key_age_days`"),
    ("`RotationOverdueDays`", "days since a rotation was due, 0 where none is", "above 0"),
    (
        "`DeployerKeyAgeDays`",
        "the same age, of the two keys that people create: Confluent's Cloud key and the Snowflake deployer's",
        "above `alerts.deployer_key_age_days`",
    ),
]


def text() -> str:
    """Raises LookupError where a field is written that nobody explains, or explained that nobody writes."""
    return markdown.page(TITLE, _INTRO, *_of_confluent(), _of_snowflake(), _rotation())


def _of_confluent() -> list[str]:
    every = confluent.Connection("sa-1", "r", "env-1", "o", "lkc-1", "lfcp-1", "e", "u", "n")
    fields = {service: list(confluent.fields(service, ApiKey("id", Secret("s")), every)) for service in confluent.SERVICES}
    _require_same(_CONFLUENT, {name for names in fields.values() for name in names})
    return [f"## Confluent Cloud: {service}\n\n{_table(_CONFLUENT, names)}" for service, names in fields.items()]


def _of_snowflake() -> str:
    every = snowflake.Connection("a", "u", "h", "r", "w", "n")
    names = list(snowflake.fields(keypair.make(), every))
    _require_same(_SNOWFLAKE, set(names))
    return f"## Snowflake: a user's key pair\n\n{_table(_SNOWFLAKE, names)}\n\n{_NOTES}"


def _rotation() -> str:
    settings = [
        (
            code(contract.ROTATION_KEEP),
            str(contract.KEYS_KEPT),
            "keys of a secret that may live between two rotations, replaced ones in their grace among them; one more during one",
        ),
        (
            code(contract.ROTATION_GRACE_DAYS),
            f"{contract.GRACE_DAYS:g}",
            "days for which a replaced key works; it is revoked within six hours after them",
        ),
        (code(contract.CLOUD_KEY_SECRET), "", "the secret with the Cloud key that may manage the accounts' keys"),
        (
            code(contract.ROTATION_ROLE_TAG),
            "",
            "a tag of a Snowflake secret: the role that may set the user's keys, and nothing else",
        ),
    ]
    parts = [
        "## Rotation",
        _SCHEDULE.format(days=contract.ROTATION_DAYS),
        markdown.table(["name", "default", "what it is"], settings),
        _READERS.format(life=versions.PENDING_LIFE / versions.DAY),
        f"Every {contract.WATCH_MINUTES} minutes, the watch writes metrics of secrets into CloudWatch's namespace "
        f"{code(contract.METRICS)}, each with an alarm:",
        markdown.table(["metric", "what it counts", "alarm"], _METRICS),
    ]
    return "\n\n".join(parts)


def _table(explained: Mapping[str, tuple[str, str, str, str]], names: list[str]) -> str:
    rows = []
    for name in names:
        what, changes, managed, kickstarter = explained[name]
        rows.append((code(name), changes, what, managed, kickstarter))
    return markdown.table(_HEADS, rows)


def _require_same(explained: Mapping[str, object], written: set[str]) -> None:
    if differing := set(explained) ^ written:
        raise LookupError(f"fields of secrets and fields explained in secrets.py differ: {', '.join(sorted(differing))}")
