"""The tables of one cluster in Tableflow's Iceberg REST catalog, with one Tableflow key.

A client exchanges the key for a session's token (OAuth 2.0, client credentials).
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from lambdas.confluent.errors import build_error
from lambdas.confluent.rest_client import build_path, get_objects, get_text, require_text
from lambdas.shared import errors
from lambdas.shared.clock import Clock
from lambdas.shared.errors import NotFound
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

    def list_topics(self) -> list[str]:
        """Return the topics whose tables the key's owner may read, by name.

        Raises NotFound if there are none, and other LakeferryErrors.
        """
        answer = self._get("")
        return sorted(get_text(table, "name") for table in get_objects(answer, "identifiers"))

    def load_metadata(self, topic: str) -> dict[str, Any]:
        """Return the metadata of a topic's table, with the snapshots that it refers to.

        Raises NotFound if there is no such table, or if the key's owner may not read it, and other
        LakeferryErrors.
        """
        metadata: dict[str, Any] = self._get(build_path(topic), snapshots="refs")["metadata"]
        return metadata

    def _get(self, path: str, **params: str) -> Any:
        route = f"/v1/namespaces{build_path(self.cluster_id)}/tables{path}"
        headers = {"Authorization": f"Bearer {self._log_in()}"}
        answer = self.session.call("GET", self.uri + route, headers=headers, params=params)
        if answer.status != 200:
            raise build_error(answer, f"GET {route}", self.clock, denied_patience=0)
        return answer.body

    def _log_in(self) -> str:
        route = "/v1/oauth/tokens"
        answer = self.session.call("POST", self.uri + route, key=self.key, form=_LOGIN, repeatable=True)
        if answer.status != 200:
            raise build_error(answer, f"POST {route}", self.clock, denied_patience=0)
        return require_text(answer.body, "access_token")


def connect(
    session: Session, clock: Clock, store: SecretStore, secret: str, *, uri: str = "", cluster_id: str = ""
) -> IcebergCatalog:
    """Connect with the key in the secret. Without `uri` and `cluster_id`, the secret has them too.

    Raises LakeferryError if the secret can't be read, or lacks a field.
    """
    key = store.read_key(secret)
    stored = store.read(secret)
    wanted = {"catalog.uri": uri, "kafka.cluster.id": cluster_id}
    if lacking := [name for name, value in wanted.items() if not value and name not in stored]:
        raise NotFound(errors.SECRET_SHAPE, f"secret {secret} lacks {', '.join(lacking)}", patience=0.0)
    return IcebergCatalog(
        session,
        clock,
        uri or stored["catalog.uri"].reveal(),
        cluster_id or stored["kafka.cluster.id"].reveal(),
        key,
    )
