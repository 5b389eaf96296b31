"""AWS regions, and those of them that have Flink and Tableflow.

Kafka clusters may be in any AWS region, because the vendor adds regions, also on request, too often for a
list of its regions to stay current (https://docs.confluent.io/cloud/current/clusters/regions.html). Flink and
Tableflow are in the regions of https://docs.confluent.io/cloud/current/flink/reference/cloud-regions.html and
https://docs.confluent.io/cloud/current/topics/tableflow/operate/cloud-regions.html.
"""

from __future__ import annotations

from typing import Final

FLINK: Final = (
    "af-south-1", "ap-east-1", "ap-northeast-1", "ap-northeast-2", "ap-south-1", "ap-southeast-1",
    "ap-southeast-2", "ap-southeast-3", "ca-central-1", "eu-central-1", "eu-north-1", "eu-south-1",
    "eu-west-1", "eu-west-2", "eu-west-3", "me-central-1", "me-south-1", "sa-east-1", "us-east-1",
    "us-east-2", "us-west-2",
)  # fmt: skip
#: Without the regions in China and GovCloud, which are in other AWS partitions.
AWS: Final = (
    *FLINK, "ap-east-2", "ap-northeast-3", "ap-south-2", "ap-southeast-4", "ap-southeast-5", "ap-southeast-6",
    "ap-southeast-7", "ca-west-1", "eu-central-2", "eu-south-2", "il-central-1", "mx-central-1", "us-west-1",
)  # fmt: skip
