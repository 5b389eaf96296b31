"""The catalog with the source table: the Glue Data Catalog or, for tables in Confluent's storage, Tableflow's
Iceberg REST catalog.

Tableflow registers no table of Confluent's storage in Glue. Its own catalog gives each table that is loaded
credentials for S3, which end. Confluent does not document when; sessions of roles in AWS end after an hour by
default, and Iceberg renews them only if the catalog names an endpoint for that. So a run loads the table
again for each window.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeVar

import attrs
import boto3
from pyspark.sql import DataFrame, SparkSession

from config.exports.contract import Source
from glue_jobs import errors, source
from glue_jobs.errors import BadInput, ExportError, SourceProblem, StorageProblem
from glue_jobs.platform import TABLEFLOW_CATALOG, tableflow_settings
from glue_jobs.source import PinnedTable, quote_table
from glue_jobs.store import CLIENT_CONFIG, Services, translate_aws_errors

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

T = TypeVar("T")

#: Fields of the secret (lambdas/confluent/secret_fields.py).
_KEY_FIELDS: Final = ("apiKey", "apiSecret", "catalog.uri")
#: Iceberg's exception for an answer 401: the key or its session isn't valid.
_LOGIN_REFUSED: Final = "NotAuthorizedException"
#: Iceberg's exception for an answer 403.
_FORBIDDEN: Final = "ForbiddenException"
#: Spark's and Iceberg's errors of a table, or of a cluster without any, that the key's owner can't see.
_NOT_FOUND: Final = ("TABLE_OR_VIEW_NOT_FOUND", "NoSuchTableException", "NoSuchNamespaceException")
_NO_ANSWER: Final = ("RESTException", "ServiceFailureException", "ServiceUnavailableException")
_logins = itertools.count(1)


class SourceCatalog(Protocol):
    """`credentials_end` says that a table which was loaded once can't be read for as long as a run may
    take.
    """

    credentials_end: ClassVar[bool]

    def name_table(self, source: Source) -> str:
        """Return the name of the topic's table in the catalog."""

    def pin(self, database: str, name: str) -> PinnedTable:
        """Return the table's current snapshot. Raises SourceProblem if there is none."""

    def read_events(self, table: PinnedTable) -> DataFrame:
        """Load the table, and return the events of the pinned snapshot (see `source.read_events`)."""

    def connect_s3(self, events: DataFrame) -> S3Client | None:
        """Return a client that may read the data files of `events`, or None if only Spark may."""

    def translate(self, error: Exception) -> ExportError:
        """Translate an exception of a window that is computed: tasks read the table's files, and write to the
        bucket of exports.
        """

    def translate_read(self, error: Exception) -> ExportError:
        """Translate an exception of reading the table's files."""


@attrs.frozen
class GlueCatalog:
    """Data files are read with the credentials of the job's role."""

    services: Services
    spark: Callable[[], SparkSession]
    credentials_end: ClassVar[bool] = False

    def name_table(self, source: Source) -> str:
        return source.table

    def pin(self, database: str, name: str) -> PinnedTable:
        return source.pin(self.services, database, name)

    def read_events(self, table: PinnedTable) -> DataFrame:
        return source.read_events(self.spark(), table)

    def connect_s3(self, events: DataFrame) -> S3Client | None:
        return self.services.s3

    def translate(self, error: Exception) -> ExportError:
        return errors.translate(error)

    def translate_read(self, error: Exception) -> ExportError:
        return errors.translate(error)


@attrs.frozen
class _TableflowKey:
    id: str
    secret: str = attrs.field(repr=False)
    catalog_uri: str


@attrs.define
class TableflowCatalog:
    """`secret_id` is the name or ARN of the secret with the API key. Without `uri`, the secret has the
    catalog's address too.
    """

    services: Services
    spark: Callable[[], SparkSession]
    secret_id: str
    uri: str
    proxy: str
    credentials_end: ClassVar[bool] = True
    #: The name of Spark's catalog of the latest login. Spark opens a catalog once and keeps it, so each login
    #: has a catalog of its own.
    _name: str = attrs.field(default="", init=False)

    def name_table(self, source: Source) -> str:
        """Return the topic's name. Unlike Glue, the catalog keeps its capitals."""
        return source.topic

    def pin(self, database: str, name: str) -> PinnedTable:
        def load() -> str:
            events = self.spark().table(quote_table(self._name, database, name))
            jvm: Any = self.spark()._jvm
            current = find_loaded_table(events).operations().current()
            return str(jvm.org.apache.iceberg.TableMetadataParser.toJson(current))

        return source.pin_metadata(self._call(load, f"{database}.{name}"), database, name)

    def read_events(self, table: PinnedTable) -> DataFrame:
        return self._call(
            lambda: source.read_events(self.spark(), table, self._name), f"{table.database}.{table.name}"
        )

    def connect_s3(self, events: DataFrame) -> S3Client | None:
        given = dict(find_loaded_table(events).io().properties())
        if "s3.access-key-id" not in given:  # the catalog signs each request of Spark instead
            return None
        session = boto3.session.Session(
            aws_access_key_id=given["s3.access-key-id"],
            aws_secret_access_key=given["s3.secret-access-key"],
            aws_session_token=given.get("s3.session-token"),
            region_name=given["client.region"],
        )
        return session.client("s3", endpoint_url=given.get("s3.endpoint"), config=CLIENT_CONFIG)

    def translate(self, error: Exception) -> ExportError:
        """Tasks read with Iceberg, in Java, and write with boto3."""
        if isinstance(error, ExportError) or "botocore" in str(error):
            return errors.translate(error)
        return self.translate_read(error)

    def translate_read(self, error: Exception) -> ExportError:
        translated = errors.translate(error)
        if translated.code != "EXP-AWS-DENIED":
            return translated
        return StorageProblem(
            "EXP-CREDENTIALS-DENIED",
            "S3 denies reading the table's files with the credentials that Tableflow's catalog gave",
        )

    def _call(self, load: Callable[[], T], table: str) -> T:
        """Return what `load` returns. Raises ExportError.

        If the catalog refuses the login, because the key was rotated or the session ended, `load` is called
        again with the key that the secret has then.
        """
        try:
            if not self._name:
                self._log_in()
            try:
                return load()
            except Exception as error:  # py4j and PySpark have several classes
                if _LOGIN_REFUSED not in str(error):
                    raise
            self._log_in()
            return load()
        except Exception as error:
            raise _explain(error, table, self.secret_id) from None

    def _log_in(self) -> None:
        """Open a new catalog of Spark with the key that the secret has now."""
        key = _read_key(self.services, self.secret_id, self.uri)
        self._name = f"{TABLEFLOW_CATALOG}_{next(_logins)}"
        spark = self.spark()
        region = self.services.s3.meta.region_name
        settings = tableflow_settings(self._name, key.catalog_uri, region, self.proxy)
        for name, value in settings.items():
            spark.conf.set(name, value)
        # Spark hands all settings to each of its jobs, and writes those of jobs to its event log. The catalog
        # reads them only when it is opened, so the key is a setting no longer than that.
        credential = f"spark.sql.catalog.{self._name}.credential"
        spark.conf.set(credential, f"{key.id}:{key.secret}")
        try:
            java_session: Any = spark._jsparkSession
            java_session.sessionState().catalogManager().catalog(self._name)
        finally:
            spark.conf.unset(credential)


def open_catalog(
    services: Services, spark: Callable[[], SparkSession], tableflow_secret: str, uri: str, proxy: str
) -> SourceCatalog:
    """Return Tableflow's catalog if there is a secret with a key for it, or else Glue's."""
    if tableflow_secret:
        return TableflowCatalog(services, spark, tableflow_secret, uri, proxy)
    return GlueCatalog(services, spark)


def find_loaded_table(events: DataFrame) -> Any:
    """Return Iceberg's Java object of the table that Spark has loaded for `events`."""
    frame: Any = events._jdf
    return frame.queryExecution().analyzed().collectLeaves().head().table().table()


def _read_key(services: Services, secret_id: str, uri: str) -> _TableflowKey:
    try:
        with translate_aws_errors(f"reading the secret {secret_id}"):
            answer = services.secrets.get_secret_value(SecretId=secret_id)
    except StorageProblem as problem:
        raise StorageProblem(
            "EXP-TABLEFLOW-KEY", f"the Tableflow key can't be read: {problem.what}", problem.remedy
        ) from None
    try:
        stored = json.loads(answer.get("SecretString", ""))
    except ValueError:
        stored = None
    fields = stored if isinstance(stored, dict) else {}
    if uri:
        fields["catalog.uri"] = uri
    lacking = [name for name in _KEY_FIELDS if not fields.get(name)]
    if lacking:
        raise BadInput(
            "EXP-TABLEFLOW-SECRET",
            f"the secret {secret_id} has no Tableflow key: it lacks {', '.join(lacking)}",
        )
    return _TableflowKey(*(str(fields[name]) for name in _KEY_FIELDS))


def _explain(error: Exception, table: str, secret_id: str) -> ExportError:
    text = str(error)
    if isinstance(error, ExportError):
        return error
    errors.log_cause(error)
    if _LOGIN_REFUSED in text:
        return SourceProblem("EXP-TABLEFLOW-KEY", f"Tableflow's catalog refuses the key in {secret_id}")
    if _FORBIDDEN in text:
        return SourceProblem(
            "EXP-TABLEFLOW-KEY",
            f"Tableflow's catalog denies access with the key in {secret_id}",
            "Check the roles of the key's owner, and whether an IP filter of the organization in Confluent "
            "Cloud lets the job in",
        )
    if any(sign in text for sign in _NOT_FOUND):
        return SourceProblem(
            "EXP-TABLE-MISSING",
            f"Tableflow's catalog has no table {table}, or the owner of the key in {secret_id} may not read "
            "it",
            "Check that Tableflow is on for the topic and has written it, and that the key's owner has the "
            "role DeveloperRead on the topic",
        )
    if any(sign in text for sign in _NO_ANSWER):
        # Iceberg has one exception for a login that is denied or fails, and for a broken connection.
        return StorageProblem(
            "EXP-CATALOG-UNREACHABLE", "Tableflow's catalog can't be reached, fails, or denies the login"
        )
    return errors.translate(error)
