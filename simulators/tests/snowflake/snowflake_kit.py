"""A bare client of the SQL API. It builds JWTs without the library that the simulator checks them with, and
checks each answer against Snowflake's documents."""

import base64
import hashlib
import json
import uuid
from pathlib import Path

import requests
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from tests.support import snowflake_contract

PATH = "/api/v2/statements"
#: The time of simulated accounts, in seconds since 1970.
START = 1_793_610_000
KEYS = {}
ROLE_ARN = "arn:aws:iam::000000000000:role/reader"
#: What CREATE EXTERNAL VOLUME, CATALOG INTEGRATION and ICEBERG TABLE need after the name.
VOLUME = f"""STORAGE_LOCATIONS=((NAME='l' STORAGE_PROVIDER='S3' STORAGE_BASE_URL='s3://lake/p/'
  STORAGE_AWS_ROLE_ARN='{ROLE_ARN}' STORAGE_AWS_EXTERNAL_ID='mine')) ALLOW_WRITES=FALSE"""
CATALOG = f"""CATALOG_SOURCE=ICEBERG_REST TABLE_FORMAT=ICEBERG CATALOG_NAMESPACE='lkc-1'
  REST_CONFIG=(CATALOG_URI='https://glue.eu-west-1.amazonaws.com/iceberg' CATALOG_API_TYPE=AWS_GLUE CATALOG_NAME='000000000000'
    ACCESS_DELEGATION_MODE=EXTERNAL_VOLUME_CREDENTIALS)
  REST_AUTHENTICATION=(TYPE=SIGV4 SIGV4_IAM_ROLE='{ROLE_ARN}' SIGV4_SIGNING_REGION='eu-west-1' SIGV4_EXTERNAL_ID='mine')
  ENABLED=TRUE REFRESH_INTERVAL_SECONDS=60"""
ICEBERG = "EXTERNAL_VOLUME='V' CATALOG='C' CATALOG_TABLE_NAME='t'"


def new_key(name="second"):
    """An RSA key; the same for the same name, because generating one takes a while."""
    if name not in KEYS:
        KEYS[name] = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return KEYS[name]


def der(key):
    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def sql_key(key):
    """As RSA_PUBLIC_KEY takes it."""
    return base64.b64encode(der(key)).decode()


def fingerprint(key):
    return "SHA256:" + base64.b64encode(hashlib.sha256(der(key)).digest()).decode()


def _coded(content):
    return base64.urlsafe_b64encode(content).rstrip(b"=")


def signed(key, claims, algorithm="RS256"):
    head = {"alg": algorithm, "typ": "JWT"}
    text = b".".join(_coded(json.dumps(part).encode()) for part in (head, claims))
    if isinstance(key, ec.EllipticCurvePrivateKey):
        r, s = decode_dss_signature(key.sign(text, ec.ECDSA(SHA256())))
        signature = r.to_bytes(32, "big") + s.to_bytes(32, "big")
    else:
        signature = key.sign(text, padding.PKCS1v15(), SHA256())
    return (text + b"." + _coded(signature)).decode()


class Client:
    """Of one user of a simulated account, by default with the role and warehouse given."""

    def __init__(self, snowflake, user=None, key=None, role=None, warehouse=None):
        self.snowflake = snowflake
        given = snowflake.credentials
        self.account = given["account"]
        self.user = user or given["user"]
        self.key = key or load_pem_private_key(Path(given["private_key_file"]).read_bytes(), None)
        self.role = role
        self.warehouse = warehouse
        self._session = requests.Session()
        self._session.trust_env = False

    def claims(self, **changed):
        now = int(self.snowflake.now())
        subject = f"{self.account}.{self.user}"
        issued = {"iss": f"{subject}.{fingerprint(self.key)}", "sub": subject, "iat": now, "exp": now + 600}
        return {name: value for name, value in (issued | changed).items() if value is not None}

    def token(self, **changed):
        return signed(self.key, self.claims(**changed))

    def call(self, method="POST", path="", body=None, *, token=None, headers=None, **query):
        sent = {
            "Authorization": f"Bearer {token or self.token()}",
            "Accept": "application/json",
            "User-Agent": "test",
        }
        url = self.snowflake.url + PATH + path
        sent = sent | (headers or {})
        answer = self._session.request(method, url, json=body, params=query, headers=sent, timeout=30)
        if answer.status_code not in (404, 405, 429):  # other paths, and the fault injector
            snowflake_contract.check(
                method, PATH + path, "", answer.status_code, answer.headers["Content-Type"], answer.json()
            )
        return answer

    def post(self, statement, *, role=None, warehouse=None, query=None, **more):
        named = {"role": role or self.role, "warehouse": warehouse or self.warehouse}
        body = {"statement": statement} | {name: value for name, value in named.items() if value} | more
        return self.call(body=body, **({"requestId": str(uuid.uuid4())} | (query or {})))

    def run(self, statement, **given):
        """The whole answer; asserts that the statement succeeded."""
        answer = self.post(statement, **given)
        assert answer.status_code == 200, f"{statement}: {answer.status_code} {answer.text[:800]}"
        return answer.json()

    def rows(self, statement, **given):
        """Each a dict by column name."""
        answer = self.run(statement, **given)
        names = [column["name"] for column in answer["resultSetMetaData"]["rowType"]]
        return [dict(zip(names, row, strict=True)) for row in answer["data"]]

    def one(self, statement, **given):
        """The first column of the only row."""
        ((value, *_),) = self.run(statement, **given)["data"]
        return value

    def result(self, statement, **given):
        """The JSON that a SYSTEM$ function answers."""
        return json.loads(self.one(statement, **given))

    def refused(self, statement, code, **given):
        """The message; asserts Snowflake's number."""
        answer = self.post(statement, **given)
        assert answer.status_code in (403, 422), f"{statement}: {answer.status_code} {answer.text[:800]}"
        assert answer.json()["code"] == code, f"{statement}: {answer.text[:800]}"
        return answer.json()["message"]

    def properties(self, statement, value="value", **given):
        return {row["property"]: row[value] for row in self.rows(statement, **given)}

    def as_role(self, role):
        return Client(self.snowflake, self.user, self.key, role, self.warehouse)


def fill(admin):
    """Create one object of each type, without AWS, and return the client with the warehouse."""
    for statement in (
        "CREATE WAREHOUSE W",
        "CREATE DATABASE D",
        "CREATE SCHEMA D.S",
        "CREATE ROLE R",
        f"CREATE USER U RSA_PUBLIC_KEY='{sql_key(new_key())}'",
        f"CREATE EXTERNAL VOLUME V {VOLUME}",
        f"CREATE CATALOG INTEGRATION C {CATALOG}",
    ):
        admin.run(statement)
    admin.warehouse = "W"
    admin.run(f"CREATE ICEBERG TABLE D.S.T {ICEBERG}")
    return admin
