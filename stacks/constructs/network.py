"""Functions and Glue jobs in a VPC that exists.

Lambda and Glue reach the VPC through network interfaces, which they create with the role of the function or
job. Sources: Lambda developer guide, "Giving Lambda functions access to resources in an Amazon VPC"; Glue
developer guide, "Connecting to a JDBC data store in a VPC"; AWS's managed policies
AWSLambdaVPCAccessExecutionRole and AWSGlueServiceRole.
"""

from __future__ import annotations

from typing import Final

from aws_cdk import Stack
from aws_cdk import aws_glue as glue
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from config.deployments.account_model import Network
from config.deployments.model import to_pascal_case
from stacks.constructs.runtime import Runtime
from stacks.constructs.statements import Statement, acknowledge, allow
from stacks.constructs.synthesis import build_own_arn

_NO_NETWORK: Final = "The deployment file names no VPC: [network] places all functions and jobs in one."
_INTERFACES: Final = "EC2 has no resources for interfaces that don't exist yet, nor for what it lists."
#: With this tag Glue marks the interfaces that it creates.
_TAG_OF_GLUE: Final = "aws-glue-service-resource"


def place_function(function: lambda_.CfnFunction, network: Network | None) -> None:
    """Run the function in the VPC, if the deployment file names one."""
    if network is None:
        acknowledge(function, _NO_NETWORK, "NIST.800.53.R5-LambdaInsideVPC")
        return
    function.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
        subnet_ids=list(network.subnets), security_group_ids=list(network.security_groups)
    )


def may_run_functions(network: Network | None) -> list[Statement]:
    """Allow what Lambda does with the function's role, if the deployment file names a VPC."""
    if network is None:
        return []
    return [
        allow(
            "JoinNetwork",
            [
                "ec2:CreateNetworkInterface",
                "ec2:DeleteNetworkInterface",
                "ec2:DescribeNetworkInterfaces",
                "ec2:DescribeSubnets",
                "ec2:AssignPrivateIpAddresses",
                "ec2:UnassignPrivateIpAddresses",
            ],
            ["*"],
            why=_INTERFACES,
        )
    ]


class JobConnections(Construct):
    """Glue connections to the VPC, one for each subnet: a connection has one. If a subnet has too few
    addresses, Glue takes the next connection. `names` is empty if the deployment file names no VPC.
    """

    def __init__(self, scope: Construct, id: str, *, runtime: Runtime) -> None:
        super().__init__(scope, id)
        self.names: list[str] = []
        self._connections: list[glue.CfnConnection] = []
        if runtime.network is None:
            return
        of = glue.CfnConnection
        for subnet, zone in runtime.network.subnets.items():
            name = f"{runtime.prefix}-{subnet}"
            place = of.PhysicalConnectionRequirementsProperty(
                availability_zone=zone,
                subnet_id=subnet,
                security_group_id_list=list(runtime.network.security_groups),
            )
            connection = of(
                self,
                to_pascal_case(subnet),
                catalog_id=Stack.of(self).account,
                connection_input=of.ConnectionInputProperty(
                    name=name,
                    description=f"Exports of {runtime.prefix} run in {subnet}",
                    connection_type="NETWORK",
                    connection_properties={},
                    physical_connection_requirements=place,
                ),
            )
            acknowledge(
                connection,
                "Glue asks for the zone, although the subnet has one. The deployment file names both.",
                "CloudFormation-Validate::W3010",
            )
            self.names.append(name)
            self._connections.append(connection)

    def attach(self, job: glue.CfnJob) -> None:
        """Run the job in the VPC. All its calls of AWS then go through the VPC too."""
        if self._connections:
            job.connections = glue.CfnJob.ConnectionsListProperty(connections=self.names)
        for connection in self._connections:
            job.add_resource_dependency(connection)

    def may_run_jobs(self) -> list[Statement]:
        """Allow what Glue does with the job's role."""
        if not self.names:
            return []
        connections = [build_own_arn(self, "glue", f"connection/{name}") for name in self.names]
        catalog = build_own_arn(self, "glue", "catalog")
        interfaces = build_own_arn(self, "ec2", "network-interface/*")
        return [
            allow(
                "GetConnections",
                ["glue:GetConnection"],
                [catalog, *connections],
            ),
            allow(
                "JoinNetwork",
                [
                    "ec2:CreateNetworkInterface",
                    "ec2:DeleteNetworkInterface",
                    "ec2:DescribeNetworkInterfaces",
                    "ec2:DescribeRouteTables",
                    "ec2:DescribeSecurityGroups",
                    "ec2:DescribeSubnets",
                    "ec2:DescribeVpcAttribute",
                    "ec2:DescribeVpcEndpoints",
                ],
                ["*"],
                why=_INTERFACES,
            ),
            allow(
                "TagInterfaces",
                ["ec2:CreateTags", "ec2:DeleteTags"],
                [interfaces],
                {"ForAllValues:StringEquals": {"aws:TagKeys": [_TAG_OF_GLUE]}},
                why="Ids of interfaces aren't known; the condition allows Glue's own tag only.",
            ),
        ]
