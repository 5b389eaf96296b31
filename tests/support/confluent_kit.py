"""A client of the simulator that checks every response against Confluent's OpenAPI files, and helpers that
create objects.
"""

from __future__ import annotations

from urllib.parse import urlsplit

import requests

from tests.support import confluent_contract

REGION = "eu-west-1"
LONG = 3600  # seconds after which all asynchronous work of the vendor has ended


class Client:
    """Calls one address with one key.

    `checked` counts the responses that were checked against the OpenAPI files.
    """

    checked = 0

    def __init__(self, url, key=None, secret=None):
        self.url = url
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.auth = (key, secret) if key else None

    def __call__(self, method, path, *, expect, **given):
        """Return the parsed body, and assert the status."""
        response = self.raw(method, path, **given)
        assert response.status_code == expect, (
            f"{method} {path}: {response.status_code} {response.text[:500]}"
        )
        return _document(response)

    def raw(self, method, path, **given):
        url = path if path.startswith("http") else self.url + path
        response = self._session.request(method, url, timeout=30, allow_redirects=False, **given)
        Client.checked += 1
        where = urlsplit(response.request.url)
        kind = response.headers.get("content-type", "")
        confluent_contract.check(
            method, where.path, where.query, response.status_code, kind, _document(response)
        )
        return response

    def get(self, path, expect=200, **query):
        return self(
            "GET",
            path,
            expect=expect,
            params={name.replace("__", "."): value for name, value in query.items()},
        )

    def post(self, path, body, expect):
        return self("POST", path, expect=expect, json=body)

    def patch(self, path, body, expect=200):
        return self("PATCH", path, expect=expect, json=body)

    def put(self, path, body, expect):
        return self("PUT", path, expect=expect, json=body)

    def delete(self, path, expect=204, **query):
        return self(
            "DELETE",
            path,
            expect=expect,
            params={name.replace("__", "."): value for name, value in query.items()},
        )


def _document(response):
    if not response.content:
        return None
    return response.json() if "json" in response.headers.get("content-type", "") else response.text


class Organization:
    """The objects that most tests need. Each is created when it is first used."""

    def __init__(self, cloud):
        self.cloud = cloud
        given = cloud.credentials
        self.id = given["organization_id"]
        self.crn = f"crn://confluent.cloud/organization={self.id}"
        self.control = Client(cloud.url, given["cloud_api_key"], given["cloud_api_secret"])

    def environment(self, name="lake", package="ESSENTIALS"):
        body = {"display_name": name, "stream_governance_config": {"package": package}}
        return self.control.post("/org/v2/environments", body, 201)["id"]

    def cluster_body(self, environment, **changed):
        spec = {
            "display_name": "events",
            "availability": "SINGLE_ZONE",
            "cloud": "AWS",
            "region": REGION,
            "config": {"kind": "Standard"},
            "environment": {"id": environment, "related": "", "resource_name": ""},
        }
        return {"spec": spec | changed}

    def cluster(self, environment):
        """Create a cluster and return it, as the control plane shows it, once it is ready."""
        made = self.control.post("/cmk/v2/clusters", self.cluster_body(environment), 202)["id"]
        self.cloud.advance(LONG)
        return self.control.get(f"/cmk/v2/clusters/{made}", environment=environment)

    def registry(self, environment):
        (only,) = self.control.get("/srcm/v3/clusters", environment=environment)["data"]
        return only

    def account(self, name):
        return self.control.post("/iam/v2/service-accounts", {"display_name": name, "description": ""}, 201)[
            "id"
        ]

    def bind(self, account, role, crn):
        body = {"principal": f"User:{account}", "role_name": role, "crn_pattern": crn}
        return self.control.post("/iam/v2/role-bindings", body, 201)["id"]

    def key(self, account, resource=None):
        """Create an API key and return (id, secret) once it works."""
        spec = {"display_name": "k", "description": "", "owner": {"id": account, "kind": "ServiceAccount"}}
        body = {"spec": spec | ({"resource": resource} if resource else {})}
        made = self.control.post("/iam/v2/api-keys", body, 202)
        self.cloud.advance(LONG)
        return made["id"], made["spec"]["secret"]

    def administrator(self, cluster):
        """Create a service account with CloudClusterAdmin on the cluster, and wait until the role is in
        effect.
        """
        account = self.account(f"admin-{cluster['id']}")
        self.bind(account, "CloudClusterAdmin", scope_of(cluster))
        self.cloud.advance(LONG)
        return account

    def kafka(self, cluster, account):
        return Client(
            cluster["spec"]["http_endpoint"], *self.key(account, {"id": cluster["id"], "kind": "Cluster"})
        )

    def tableflow(self, account):
        resource = {"id": "tableflow", "kind": "Tableflow", "api_version": "tableflow/v1"}
        return Client(self.cloud.url, *self.key(account, resource))

    def schemas(self, environment, account):
        registry = self.registry(environment)
        return Client(
            registry["spec"]["http_endpoint"], *self.key(account, {"id": registry["id"], "kind": "Cluster"})
        )


def scope_of(cluster):
    return cluster["metadata"]["resource_name"].rpartition("/")[0]
