"""Where Confluent Cloud is in AWS, by the vendor's own lists of regions of clusters, of Flink, and of Tableflow.

https://docs.confluent.io/cloud/current/clusters/regions.html
https://docs.confluent.io/cloud/current/flink/reference/cloud-regions.html
https://docs.confluent.io/cloud/current/topics/tableflow/operate/cloud-regions.html: all where Flink is
"""

from __future__ import annotations

from typing import Final

FLINK: Final = (
    "af-south-1", "ap-east-1", "ap-northeast-1", "ap-northeast-2", "ap-south-1", "ap-southeast-1", "ap-southeast-2",
    "ap-southeast-3", "ca-central-1", "eu-central-1", "eu-north-1", "eu-south-1", "eu-west-1", "eu-west-2", "eu-west-3",
    "me-central-1", "me-south-1", "sa-east-1", "us-east-1", "us-east-2", "us-west-2",
)  # fmt: skip
KAFKA: Final = (
    *FLINK, "ap-northeast-3", "ap-south-2", "ap-southeast-4", "ap-southeast-5", "ap-southeast-7", "ca-west-1", "eu-central-2",
    "eu-south-2", "il-central-1",
)  # fmt: skip
