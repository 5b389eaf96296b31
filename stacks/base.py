"""The base class of stacks, with name and tags, and the options of a synthesis."""

from __future__ import annotations

from urllib.parse import urlsplit

import attrs
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


@attrs.frozen
class SynthOptions:
    """Options from the CDK context: URLs of APIs ("" for the vendor's own), the platform of functions, and
    repairs.

    `repairs` has the resources, as stack/logical id, whose missing object is to be created again. `repair` is
    a value that no earlier deployment used.
    """

    confluent_url: str = ""
    catalog_url: str = ""
    snowflake_url: str = ""
    functions_local: bool = False
    repair: str = ""
    repairs: frozenset[str] = frozenset()

    @classmethod
    def of(cls, scope: Construct) -> SynthOptions:
        """Read the context of the construct tree, which `-c` sets on the command line."""
        names = ("confluent_url", "catalog_url", "snowflake_url")
        settings = {name: str(scope.node.try_get_context(name) or "") for name in names}
        repair, _, listed = str(scope.node.try_get_context("repair") or "").partition(":")
        return cls(
            **settings,
            functions_local=scope.node.try_get_context("functions") == "local",
            repair=repair,
            repairs=frozenset(filter(None, listed.split(","))),
        )


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


def build_own_arn(scope: Construct, service: str, resource: str, *, region: bool = True) -> str:
    """Return an ARN in this account, and in this region unless the service has no regions."""
    stack = Stack.of(scope)
    return f"arn:{stack.partition}:{service}:{stack.region if region else ''}:{stack.account}:{resource}"
