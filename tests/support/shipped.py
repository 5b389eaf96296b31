"""The files that ship with Lakeferry. Users edit them and put their own beside them, and no test may depend
on that.

tests/data/shipped has a copy of each shipped deployment file; `python -m dev.shipped` copies them after a
change.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

from config.deployments import deployment_file
from config.deployments.deployment_file import LoadedDeployment
from config.exports.check import NOT_JUDGED

ROOT: Final = Path(__file__).resolve().parents[2]
DEPLOYMENTS: Final = ROOT / "tests" / "data" / "shipped"
STAGES: Final = ("dev", "prod", "orders")
#: Contracts over topics of producers, which the demo exports, and over topics that Flink makes.
EXPORTS: Final = ("daily_trades", "weekly_sales", "weekly_sales_by_region")
FLINK_EXPORTS: Final = ("daily_trades_by_minute", "weekly_store_orders")
STATEMENTS: Final = (
    "stock_trades_by_minute",
    "stock_trades_with_totals",
    "store_orders_flat",
    "store_orders_once",
)


def load(stage: str) -> LoadedDeployment:
    return deployment_file.load_stage(stage, DEPLOYMENTS, judge=NOT_JUDGED)


def load_existing() -> LoadedDeployment:
    """Return a deployment of exports only, over tables that exist. It doesn't ship."""
    return deployment_file.load(ROOT / "tests" / "data" / "existing.toml", judge=NOT_JUDGED)


def load_existing_cluster() -> LoadedDeployment:
    """Return a deployment over topics of a cluster that somebody else has. It doesn't ship."""
    return deployment_file.load(ROOT / "tests" / "data" / "existing_cluster.toml", judge=NOT_JUDGED)


def load_regulated() -> LoadedDeployment:
    """Return a deployment in a VPC, with KMS keys and conventions of an organization. It doesn't ship."""
    return deployment_file.load(ROOT / "tests" / "data" / "regulated.toml", judge=NOT_JUDGED)


def load_managed() -> LoadedDeployment:
    """Return a deployment with a table in Confluent's storage. It doesn't ship."""
    return deployment_file.load(ROOT / "tests" / "data" / "managed.toml", judge=NOT_JUDGED)


def read(stage: str) -> str:
    return (DEPLOYMENTS / f"{stage}.toml").read_text(encoding="utf-8")


def require_unedited(stage: str = "dev") -> None:
    """Skip a test of a command that reads the clone's own file, if a user has edited that."""
    if (ROOT / "project" / "deployments" / f"{stage}.toml").read_text(encoding="utf-8") != read(stage):
        pytest.skip(
            f"project/deployments/{stage}.toml is not the one that ships, and this test is about that"
        )


def restore(project: Path) -> None:
    """Give a copy of the project the shipped deployment files and contracts, and no others."""
    for folder, names in (("deployments", STAGES), ("exports", (*EXPORTS, *FLINK_EXPORTS))):
        for file in (project / folder).glob("*.toml"):
            if file.stem not in names:
                file.unlink()
    for stage in STAGES:
        shutil.copy(DEPLOYMENTS / f"{stage}.toml", project / "deployments")
