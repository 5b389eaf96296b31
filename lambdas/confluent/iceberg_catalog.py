"""The tables of one cluster in Tableflow's Iceberg REST catalog, with one Tableflow key.

A client exchanges the key for a session's token (OAuth 2.0, client credentials).
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from lambdas.confluent.errors import build_error
from lambdas.confluent.rest_client import build_path, require_text
from lambdas.shared.clock import Clock
from lambdas.shared.http import Session
from lambdas.shared.redaction import ApiKey
from lambdas.shared.secrets import SecretStore

_LOGIN: Final = {"grant_type": "client_credentials", "scope": "catalog"}


@attrs.frozen
class IcebergCatalog:
    session: Session
    clock: Clock
    uri: str
    cluster_id: str
    key: ApiKey

    def load_metadata(self, topic: str) -> dict[str, Any]:
        """Return the metadata of a topic's table, with the snapshots that it refers to.

        Raises NotFound if there is no such table, or if the key's owner may not read it, and other
        LakeferryErrors.
        """
        route = f"/v1/namespaces{build_path(self.cluster_id)}/tables{build_path(topic)}"
        answer = self.session.call(
            "GET",
            self.uri + route,
            headers={"Authorization": f"Bearer {self._log_in()}"},
            params={"snapshots": "refs"},
        )
        if answer.status != 200:
            raise build_error(answer, f"GET {route}", self.clock, denied_patience=0)
        metadata: dict[str, Any] = answer.body["metadata"]
        return metadata

    def _log_in(self) -> str:
        route = "/v1/oauth/tokens"
        answer = self.session.call("POST", self.uri + route, key=self.key, form=_LOGIN, repeatable=True)
        if answer.status != 200:
            raise build_error(answer, f"POST {route}", self.clock, denied_patience=0)
        return require_text(answer.body, "access_token")


def connect(session: Session, clock: Clock, store: SecretStore, secret: str) -> IcebergCatalog:
    """Connect with the key in the secret, to the catalog and the cluster that the secret names.

    Raises LakeferryError if the secret can't be read.
    """
    stored = store.read(secret)
    return IcebergCatalog(
        session,
        clock,
        stored["catalog.uri"].reveal(),
        stored["kafka.cluster.id"].reveal(),
        store.read_key(secret),
    )
