"""How AWS resources outside of stacks are recognised as a deployment's."""

from __future__ import annotations

import re

import attrs

from config.deployments.model import Deployment


@attrs.frozen
class Recognition:
    """Patterns by which resources that no stack has are recognised as the deployment's.

    - `generated`: only CloudFormation can have given the name, such as lake-dev-data-Logs8A1F-1X2Y3Z4A5B6C.
    - `truncated`: CloudFormation gave the name, and a service's limit cut it. It may belong to another
      deployment, so tags or a former stack decide.
    - `custom`: anybody could have given the name, such as lake-dev-exports. The `description` or tags decide;
      with `needs_tags`, only tags.

    All are regular expressions with placeholders, which `resolve` replaces: "<prefix>-exports" becomes
    "lake\\-dev-exports".
    """

    generated: str = ""
    truncated: str = ""
    custom: str = ""
    description: str = ""
    needs_tags: bool = False

    def resolve(self, deployment: Deployment) -> Recognition:
        """Return the patterns, with <prefix> and the other placeholders replaced by their values."""
        prefix = re.escape(deployment.prefix)
        stack = rf"{prefix}-(data|confluent|snowflake|exports|operations)"
        chosen_buckets = [
            name for name in (deployment.aws.tableflow_bucket, deployment.aws.lake_bucket) if name
        ]
        values = {
            "<prefix>": prefix,
            "<regional>": re.escape(deployment.regional_prefix),
            "<project>": re.escape(deployment.identity.name),
            "<buckets>": "|".join(map(re.escape, chosen_buckets)),
            # It ends in digits of its stack's id, unless an earlier version created it. Earlier deployments
            # may have kept theirs.
            "<aggregates>": deployment.prefix.replace("-", "_") + "_aggregates(_[0-9a-f]{8})?",
            # A name that CloudFormation generates: stack, logical id, 12 or 13 characters. No other stack's
            # names match.
            "<generated>": rf"{stack}-[A-Za-z0-9]+-[A-Za-z0-9]{{12,13}}",
            # The same, cut to the most characters that a service allows. What begins with
            # `lake-dev-data-confluent-` may be of the stack `lake-dev-data` or of the stack
            # `lake-dev-data-confluent`.
            "<truncated>": rf"(?=.{{64}}$|.{{80}}$){stack}-[A-Za-z0-9-]{{30,}}",
        }

        def fill(pattern: str) -> str:
            return re.sub("|".join(values), lambda match: values[match[0]], pattern)

        generated, truncated, custom, description = map(
            fill, (self.generated, self.truncated, self.custom, self.description)
        )
        return Recognition(generated, truncated, custom, description, self.needs_tags)


def matches(pattern: str, name: str) -> bool:
    """Return whether a pattern of a Recognition matches the whole name. An empty pattern matches nothing."""
    return bool(pattern) and re.fullmatch(pattern, name) is not None
