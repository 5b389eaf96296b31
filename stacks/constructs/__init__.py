"""Constructs for any CDK app, and what the stacks of a deployment file are made of.

The names here are the library that other apps import; docs/how-to/use-the-constructs.md shows them.
"""

from config.deployments.account_model import Network
from config.deployments.confluent_model import Tableflow
from stacks.constructs.confluent_provider import ConfluentProvider
from stacks.constructs.kafka import Environment, KafkaCluster
from stacks.constructs.runtime import BadProps, Runtime
from stacks.constructs.scheduled_export import Export, ExportBucket
from stacks.constructs.service_account import ApiKey, ServiceAccount
from stacks.constructs.table import Table
from stacks.constructs.table_storage import TableStorage
from stacks.constructs.topic import Topic

__all__ = [
    "ApiKey",
    "BadProps",
    "ConfluentProvider",
    "Environment",
    "Export",
    "ExportBucket",
    "KafkaCluster",
    "Network",
    "Runtime",
    "ServiceAccount",
    "Table",
    "TableStorage",
    "Tableflow",
    "Topic",
]
