"""Estimate the monthly cost of a deployment: a range for what runs permanently, and prices for usage."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

import attrs

from config.deployments.deployment_file import LoadedDeployment
from config.deployments.export_model import Export
from config.deployments.model import Deployment
from config.exports import cron
from lakeferry.plan.confluent_prices import FoundPrice, read_given
from stacks.confluent import rights

PRICES: Final = Path(__file__).with_name("prices.toml")
HOURS: Final = 730.0
#: The runs of exports are counted in these thirty days, in which most time zones don't change to or from
#: daylight saving time.
_COUNTED_FROM: Final = datetime(2026, 6, 1, tzinfo=UTC)
_DAYS: Final = 30
_DPUS: Final = {"G.1X": 1, "G.2X": 2, "G.4X": 4}
#: Credits that a warehouse uses in an hour, by its size.
_CREDITS: Final = {"XSMALL": 1, "SMALL": 2, "MEDIUM": 4, "LARGE": 8}

LEFT_OUT: Final = (
    "Stream Governance beyond what its package includes",
    "eCKUs after the first one, if max_ecku is not set",
    "data: GB written to or read from topics, stored in S3, or sent between regions or to the internet",
    "requests of S3, Lambda, DynamoDB, Step Functions, SNS, SQS, EventBridge and KMS, and logs: these cost "
    "cents at this size",
    "differences between regions and editions, discounts, commitments, free tiers, support plans and taxes",
    "resources that exist already, such as an environment or a Snowflake warehouse that others use too",
)


@attrs.frozen
class Line:
    """A cost from `low` to `high` in USD a month.

    `why` is the basis of the estimate, `prices` has the ids of its prices.
    """

    what: str
    low: float
    high: float
    why: str
    prices: tuple[str, ...]


@attrs.frozen
class Rate:
    """The price in USD of a unit of usage. The deployment file doesn't say how much will be used."""

    what: str
    low: float
    high: float
    prices: tuple[str, ...]


@attrs.frozen
class Estimate:
    """`unknown` has a sentence for each cost whose price isn't known. It is in no total."""

    lines: list[Line]
    rates: list[Rate]
    unknown: list[str] = attrs.field(factory=list)

    @property
    def low(self) -> float:
        return sum(line.low for line in self.lines)

    @property
    def high(self) -> float:
        return sum(line.high for line in self.lines)

    @property
    def used(self) -> list[Price]:
        """Return the prices that the estimate is based on, in the order of the price table."""
        behind: list[Line | Rate] = [*self.lines, *self.rates]
        names = {name for part in behind for name in part.prices}
        return [price for name, price in load_prices().items() if name in names]


def estimate(plan: LoadedDeployment, found: Mapping[str, FoundPrice] | None = None) -> Estimate:
    """`found` are prices of Tableflow and connectors, by default those of the deployment file."""
    deployment = plan.deployment
    prices = read_given(deployment) if found is None else found
    lines = [*_estimate_confluent(deployment), *_estimate_exports(deployment), *_estimate_permanent(plan)]
    rates = list(_list_rates(deployment))
    unknown = []
    for counted in _count_unpublished(deployment):
        price = prices.get(counted.key)
        if price is None:
            unknown.append(
                f"{counted.what}: unknown, because Confluent publishes no price: set prices.{counted.key}"
            )
        elif counted.units is None:
            rates.append(Rate(f"{counted.what} ({price.source})", price.low, price.high, ()))
        else:
            low, high = counted.units * price.low, counted.units * price.high
            lines.append(Line(counted.what, low, high, price.source, ()))
    return Estimate(lines, rates, unknown)


@attrs.frozen
class _Unpublished:
    """What Confluent bills at the price `key`: `units` of it in a month, None if that isn't known."""

    key: str
    what: str
    units: float | None


def _count_unpublished(deployment: Deployment) -> Iterator[_Unpublished]:
    if deployment.confluent is None:
        return
    if tables := [topic for topic in deployment.topics if topic.tableflow]:
        yield _Unpublished("tableflow_topic_hour", f"Tableflow topics ({len(tables)})", len(tables) * HOURS)
        yield _Unpublished("tableflow_gb", "a GB that Tableflow processes", None)
    if generators := [topic for topic in deployment.topics if topic.datagen]:
        tasks = len(generators)
        yield _Unpublished(
            "connector_task_hour", f"Datagen connectors, one task each ({tasks})", tasks * HOURS
        )
        yield _Unpublished("connector_gb", "a GB that connectors transfer", None)


def count_runs(export: Export) -> int:
    """Return how often the export's schedule starts it in thirty days."""
    schedule = cron.parse(export.cron, export.zone)
    end = _COUNTED_FROM + timedelta(days=_DAYS)
    count = 0
    time = schedule.after(_COUNTED_FROM)
    while time is not None and time <= end:
        count = count + 1
        time = schedule.after(time)
    return count


def _estimate_confluent(deployment: Deployment) -> Iterator[Line]:
    settings = deployment.confluent
    if settings is None:
        return
    most = settings.max_ecku or 1
    limit = (
        f"up to {most} eCKU"
        if settings.max_ecku
        else "with one eCKU; it can scale further, up to max_ecku if that is set"
    )
    high = max(
        read_price("confluent_standard_month"), most * HOURS * read_price("confluent_standard_ecku_hour")
    )
    used = ("confluent_standard_month", "confluent_standard_ecku_hour")
    if not deployment.uses_existing_cluster:
        yield Line("Kafka cluster, Standard", read_price("confluent_standard_month"), high, limit, used)
    if deployment.statements:
        rate = HOURS * read_price("flink_cfu_hour")
        why = f"running all month, with between one CFU in total and flink_max_cfu = {settings.flink_max_cfu}"
        yield Line(
            f"Flink statements ({len(deployment.statements)})",
            rate,
            rate * settings.flink_max_cfu,
            why,
            ("flink_cfu_hour",),
        )


def _estimate_exports(deployment: Deployment) -> Iterator[Line]:
    aws = deployment.aws
    dpus = aws.glue_workers * _DPUS[aws.glue_worker_type]
    price = f"glue_{aws.glue_version}_dpu_hour"
    for export in deployment.exports:
        runs = count_runs(export)
        minute = runs * dpus * read_price(price) / 60
        why = f"{runs} runs of {dpus:g} DPU, from 1 minute to the time limit of {aws.glue_timeout_minutes}"
        yield Line(f"Glue job of {export.contract}", minute, minute * aws.glue_timeout_minutes, why, (price,))


def _estimate_permanent(plan: LoadedDeployment) -> Iterator[Line]:
    """Yield what AWS bills for each month, whether or not it is used."""
    secrets = count_secrets(plan)
    keys = count_keys(plan)
    yield _estimate_month(
        "Secrets", secrets, "secret_month", "keys of service accounts and users, and the pseudonymisation key"
    )
    yield _estimate_month(
        "KMS keys", keys, "kms_key_month", "one for each stack with secrets, one for alarms", most=3
    )
    yield _estimate_month(
        "Metrics of the monitoring function",
        count_metrics(plan.deployment),
        "metric_month",
        "one for each object and one for all",
    )
    yield _estimate_month(
        "Alarms",
        count_alarms(plan.deployment),
        "alarm_month",
        "one for each kind of metric, two for each function",
    )
    if plan.deployment.alerts.dashboard:
        yield _estimate_month(
            "Dashboard", 1, "dashboard_month", "free for the first three dashboards of an account"
        )


def _estimate_month(what: str, count: int, price: str, why: str, most: int = 1) -> Line:
    """`most` is the factor from `low` to `high`.

    It is 3 for KMS keys: AWS also bills the first two rotations of a key.
    """
    amount = count * read_price(price)
    return Line(f"{what} ({count})", amount, amount * most, why, (price,))


def count_secrets(plan: LoadedDeployment) -> int:
    deployment = plan.deployment
    return (
        count_confluent_keys(deployment)
        + int(deployment.uses_snowflake)
        + int(deployment.aws.pseudonym_secret is None)
    )


def count_confluent_keys(deployment: Deployment) -> int:
    """Count the API keys of the deployment's own accounts. There are none with `[source]`."""
    return len(rights.list_key_uses(deployment)) if deployment.confluent else 0


def count_keys(plan: LoadedDeployment) -> int:
    """Count the KMS keys: for Confluent's keys, alarms, the logs of jobs, Snowflake's users and the
    pseudonymisation key.
    """
    return (
        int(plan.deployment.confluent is not None)
        + 1
        + int(bool(plan.deployment.exports))
        + int(plan.deployment.uses_snowflake)
        + int(plan.deployment.aws.pseudonym_secret is None)
    )


def count_alarms(deployment: Deployment) -> int:
    """Count the alarms: for each metric, for failed measurements, two for each function, and one for each
    dead-letter queue.
    """
    vendors = int(deployment.confluent is not None) + int(deployment.uses_snowflake)
    functions = 2 * vendors + (0 if deployment.keeps_data else 1) + 1 + int(bool(deployment.exports))
    queues = 1 + vendors
    return len(set(_metrics(deployment))) + 1 + 2 * functions + queues


def count_metrics(deployment: Deployment) -> int:
    emitted = list(_metrics(deployment))
    return len(emitted) + len(set(emitted)) + 1  # one for failed measurements


def _metrics(deployment: Deployment) -> Iterator[str]:
    """Yield the name of each metric, once for each object that it is emitted for."""
    for topic in deployment.tables:
        if _monitors_cluster(deployment):
            yield from ("TopicAgeHours", "TableflowStopped")
        if topic in deployment.tables_in_glue:
            yield from ("IcebergAgeHours", "GlueAgeHours")
        if topic in deployment.managed_tables:
            yield "IcebergAgeHours"
        if deployment.uses_snowflake and topic.tableflow and topic.tableflow.snowflake_table:
            yield "SnowflakeAgeHours"
    yield from ["ExportLateHours"] * len(deployment.exports)
    yield from ["RecipientsUnconfirmed"] * len(deployment.sns_exports)
    secrets = count_confluent_keys(deployment) + int(deployment.uses_snowflake)
    yield from ["KeyAgeDays", "RotationOverdueDays"] * secrets
    yield from ["DeployerKeyAgeDays"] * (len(deployment.manual_secrets) + int(deployment.uses_snowflake))
    if _monitors_cluster(deployment):
        yield "RowsSkipped"


def _monitors_cluster(deployment: Deployment) -> bool:
    """Return whether monitoring has a key of the Kafka cluster."""
    return deployment.confluent is not None and not deployment.uses_existing_cluster


def _list_rates(deployment: Deployment) -> Iterator[Rate]:
    if deployment.confluent:
        yield _build_rate("a GB written to or read from a topic", "confluent_gb")
        yield _build_rate("a GB stored in topics for a month", "confluent_gb_month")
    yield _build_rate("a TB that Athena queries read", "athena_tb")
    if deployment.snowflake is not None and deployment.uses_snowflake:
        size = deployment.snowflake.warehouse_size
        used = ("snowflake_credit_low", "snowflake_credit_high")
        low = _CREDITS[size] * read_price("snowflake_credit_low")
        high = _CREDITS[size] * read_price("snowflake_credit_high")
        yield Rate(f"an hour in which the Snowflake warehouse runs ({size})", low, high, used)


def _build_rate(what: str, price: str) -> Rate:
    return Rate(what, read_price(price), read_price(price), (price,))


@attrs.frozen
class Price:
    """A list price. `as_of` is the day on which it was read at `source`, a URL."""

    id: str
    usd: float
    unit: str
    as_of: date
    source: str


@functools.cache
def load_prices() -> dict[str, Price]:
    """Return the prices by id."""
    read = tomllib.loads(PRICES.read_text(encoding="utf-8"))["price"]
    return {entry["id"]: Price(**{**entry, "usd": float(entry["usd"])}) for entry in read}


def read_price(name: str) -> float:
    return load_prices()[name].usd
