"""The base class of stacks, with name and tags, and what its functions and jobs have in common."""

from __future__ import annotations

from urllib.parse import urlsplit

import jsii
from aws_cdk import (
    Aspects,
    CfnOutput,
    CfnResource,
    DefaultStackSynthesizer,
    Environment,
    IAspect,
    PermissionsBoundary,
    Stack,
    Tags,
    Token,
)
from constructs import Construct, IConstruct

from config.deployments.deployment_file import LoadedDeployment
from config.deployments.model import Deployment
from config.deployments.source_model import CatalogSource
from stacks.constructs.mail import build_alarm_topic_name
from stacks.constructs.runtime import Runtime
from stacks.constructs.synthesis import SynthOptions, build_own_arn


@jsii.implements(IAspect)
class RolePath:
    """Gives every role a path, also those that CDK creates."""

    def __init__(self, path: str) -> None:
        self._path = path

    def visit(self, node: IConstruct) -> None:
        if isinstance(node, CfnResource) and node.cfn_resource_type == "AWS::IAM::Role":
            node.add_property_override("Path", self._path)


class LakeferryStack(Stack):
    """`part` is the stack's name within the deployment, `purpose` a sentence for CloudFormation's console.

    Values for other stacks are always exported by `export_value`: a stack that stops importing a value is
    deployed after this one, and CloudFormation refuses to remove an export in use.
    """

    def __init__(self, scope: Construct, part: str, *, loaded: LoadedDeployment, purpose: str) -> None:
        deployment = loaded.deployment
        aws = loaded.deployment.aws
        super().__init__(
            scope,
            f"{deployment.prefix}-{part}",
            description=f"Lakeferry {deployment.prefix}: {purpose}",
            env=Environment(account=aws.account, region=aws.region),
            termination_protection=deployment.keeps_data,
            permissions_boundary=PermissionsBoundary.from_arn(aws.permissions_boundary)
            if aws.permissions_boundary
            else None,
            synthesizer=DefaultStackSynthesizer(qualifier=aws.bootstrap_qualifier)
            if aws.bootstrap_qualifier
            else None,
        )
        if aws.iam_path:
            Aspects.of(self).add(RolePath(aws.iam_path))
        self.loaded = loaded
        identity = deployment.identity
        for name, value in {
            "project": identity.name,
            "stage": identity.stage,
            "owner": identity.owner,
            **identity.tags,
        }.items():
            Tags.of(self).add(name, value)

    @property
    def deployment(self) -> Deployment:
        return self.loaded.deployment

    @property
    def runtime(self) -> Runtime:
        """Return what the deployment file says about all functions and jobs.

        The topic of alarms has a fixed name, so stacks that are deployed before it can name it.
        """
        deployment = self.deployment
        aws = deployment.aws
        return Runtime(
            project=deployment.identity.name,
            stage=deployment.identity.stage,
            alarm_topic_arn=build_own_arn(self, "sns", build_alarm_topic_name(deployment.prefix)),
            network=deployment.network,
            secrets_key_arn=deployment.encryption.secrets,
            logs_key_arn=deployment.encryption.logs,
            lake_formation=aws.lake_formation,
            log_retention_days=aws.log_retention_days,
            lambda_python=aws.lambda_python,
            lambda_memory_mb=aws.lambda_memory_mb,
            lambda_timeout_seconds=aws.lambda_timeout_seconds,
            glue_version=aws.glue_version,
            glue_worker_type=aws.glue_worker_type,
            glue_workers=aws.glue_workers,
            glue_timeout_minutes=aws.glue_timeout_minutes,
        )

    def export(self, value: str) -> str:
        """Return a value for other stacks. What the deployment file names needs no export."""
        return self.export_value(value) if Token.is_unresolved(value) else value

    def output(self, name: str, value: str, description: str) -> None:
        """Add an output with an id or address that users need."""
        CfnOutput(self, name, value=value, description=description)


def build_catalog_uri(scope: Construct, source: CatalogSource) -> str:
    """Return the address of Tableflow's catalog, or of the simulator's."""
    simulator_url = SynthOptions.of(scope).catalog_url
    return f"{simulator_url}{urlsplit(source.uri).path}" if simulator_url else source.uri
