"""`[source]`: where tables are that Tableflow writes already."""

from __future__ import annotations

import attrs

from config.deployments import validation
from config.toml_model import setting


@attrs.frozen
class GlueSource:
    """Tables in Glue whose files are in a bucket of the customer. `kms_key` is None if no key of KMS encrypts
    the bucket.
    """

    database: str
    bucket: str
    kms_key: str | None


@attrs.frozen
class CatalogSource:
    """Tables of one Kafka cluster in Confluent's storage, in Tableflow's Iceberg REST catalog."""

    uri: str
    cluster_id: str
    key_secret: str


@attrs.frozen
class RegistrySource:
    """The Schema Registry that the producers of the topics use."""

    url: str
    key_secret: str


@attrs.frozen
class Source:
    """`[source]`, instead of `[confluent]`: tables that Tableflow writes already. Lakeferry reads them, and
    creates nothing in Confluent Cloud. Only tables in Confluent's storage, and schemas in Schema
    Registry, need a key of Confluent.
    """

    glue_database: str | None = setting(
        "Name of the Glue database with the tables. Tableflow names it like the cluster, lkc-….",
        default=None,
        form=validation.GLUE_DATABASE,
    )
    tableflow_bucket: str | None = setting(
        "Name of the bucket that Tableflow writes to, in the region of the deployment. It is only read.",
        default=None,
        check=validation.bucket_name,
    )
    kms_key: str | None = setting(
        "ARN of the KMS key that encrypts the bucket, if it has one. The key's policy must let the account's "
        "roles decrypt with it.",
        default=None,
        form=validation.KMS_KEY,
    )
    catalog_uri: str | None = setting(
        "For tables in Confluent's storage, instead of Glue and the bucket: the address of Tableflow's "
        "Iceberg REST catalog, as Confluent's console shows it.",
        default=None,
        form=validation.CATALOG_URI,
    )
    cluster_id: str | None = setting(
        "Id of the Kafka cluster with these tables, lkc-….", default=None, form=validation.CLUSTER_ID
    )
    tableflow_key_secret: str | None = setting(
        "Name of the secret with a Tableflow API key (`apiKey`, `apiSecret`), created before the deployment. "
        "Its owner needs the role DeveloperRead on the topics, and no other.",
        default=None,
        form=validation.SECRET_NAME,
    )
    schema_registry_url: str | None = setting(
        "Address of the Schema Registry with the topics' schemas, as Confluent's console shows it. With it, "
        "`topics import` reads their tags too, and `doctor` compares them with the files. Exports run "
        "without it.",
        default=None,
        form=validation.REGISTRY_URL,
    )
    schema_registry_key_secret: str | None = setting(
        "Name of the secret with a key of this Schema Registry (`apiKey`, `apiSecret`). Its owner needs the "
        "role DeveloperRead on the subjects, and no other. Only commands use it.",
        default=None,
        form=validation.SECRET_NAME,
    )

    @property
    def glue(self) -> GlueSource | None:
        """Return where the tables are, if they are in Glue."""
        if not self.glue_database or not self.tableflow_bucket:
            return None
        return GlueSource(self.glue_database, self.tableflow_bucket, self.kms_key)

    @property
    def catalog(self) -> CatalogSource | None:
        """Return where the tables are, if they are in Confluent's storage."""
        if not self.catalog_uri or not self.cluster_id or not self.tableflow_key_secret:
            return None
        return CatalogSource(self.catalog_uri, self.cluster_id, self.tableflow_key_secret)

    @property
    def registry(self) -> RegistrySource | None:
        """Return where the schemas are, if the file says it."""
        if not self.schema_registry_url or not self.schema_registry_key_secret:
            return None
        return RegistrySource(self.schema_registry_url, self.schema_registry_key_secret)

    @property
    def brought_keys(self) -> dict[str, str]:
        """Return the secrets of keys that people create and store, by Confluent's name of the service."""
        secrets = {"Tableflow": self.tableflow_key_secret, "Schema Registry": self.schema_registry_key_secret}
        return {service: secret for service, secret in secrets.items() if secret}
