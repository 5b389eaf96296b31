"""The VPC that the deployment file names: whether functions and jobs can run in it and reach AWS and vendors.

Sources: Lambda developer guide, "Giving Lambda functions access to resources in an Amazon VPC"; Glue's
developer guide, "Setting up Amazon VPC for JDBC connections" (the security group's own rule); VPC user guide,
"Route tables". Network ACLs and the rules for outgoing traffic are not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs
from botocore.exceptions import ClientError

from config.deployments.account_model import Network
from lakeferry.deployment.context import DeploymentContext
from lakeferry.health import runner
from lakeferry.health.model import Check, Group
from lakeferry.inventory.aws_listing import list_pages
from lambdas.shared.aws import read_error_code

GROUP: Final = Group("network")
SUBNETS: Final = "subnets"
SECURITY_GROUPS: Final = "security groups"
_FILE: Final = "the deployment file"
_SUBNET_MISSING: Final = ("InvalidSubnetID.NotFound", "InvalidSubnetID.Malformed")
_GROUP_MISSING: Final = ("InvalidGroup.NotFound", "InvalidGroupId.Malformed")
_EVERYWHERE: Final = "0.0.0.0/0"
#: Targets of a route that lead out of a private subnet. An internet gateway does not: functions and jobs have
#: no public address.
_WAYS_OUT: Final = (
    "NatGatewayId",
    "TransitGatewayId",
    "InstanceId",
    "NetworkInterfaceId",
    "VpcPeeringConnectionId",
)
#: AWS's services that functions, jobs and CDK's provider framework call.
_SERVICES: Final = (
    "s3", "dynamodb", "secretsmanager", "cloudformation", "lambda", "states", "glue", "sns", "monitoring",
)  # fmt: skip


@attrs.frozen
class _Vpc:
    """`endpoints` has the services that have an endpoint of the VPC, such as s3."""

    id: str
    subnets: Sequence[dict[str, Any]]
    route_tables: Sequence[dict[str, Any]]
    endpoints: frozenset[str]

    def find_default_route(self, subnet_id: str) -> dict[str, Any] | None:
        """Return the subnet's active route to all other addresses, by its own or the VPC's main table."""
        main = None
        for table in self.route_tables:
            for association in table.get("Associations", []):
                if association.get("SubnetId") == subnet_id:
                    return _find_active_default(table)
                if association.get("Main"):
                    main = table
        return _find_active_default(main) if main else None


def look(ctx: DeploymentContext) -> list[Check]:
    """Return no checks for a file without `[network]`. Raises ClientError."""
    network = ctx.deployment.network
    if network is None:
        return []
    ec2 = ctx.client("ec2")
    try:
        subnets = ec2.describe_subnets(SubnetIds=list(network.subnets))["Subnets"]
    except ClientError as error:
        if read_error_code(error) not in _SUBNET_MISSING:
            raise
        message = error.response["Error"]["Message"]
        fix = f"Correct `network.subnets` in {_FILE}: the subnets of one VPC in {ctx.region}"
        return [GROUP.fail(SUBNETS, message, fix), *GROUP.skip_all((SECURITY_GROUPS,), "not checked")]
    checks = [_check_subnets(network, subnets)]
    vpc_id = subnets[0]["VpcId"]
    checks.append(
        runner.attempt(GROUP, SECURITY_GROUPS, lambda: _check_security_groups(ctx, network, vpc_id))
    )
    vpc = _read_vpc(ctx, vpc_id, subnets)
    return [*checks, *(_check_way_out(ctx, vpc, subnet["SubnetId"]) for subnet in subnets)]


def _check_subnets(network: Network, subnets: Sequence[dict[str, Any]]) -> Check:
    vpcs = sorted({subnet["VpcId"] for subnet in subnets})
    if len(vpcs) > 1:
        fix = "Name subnets of one VPC: a function has network interfaces in one VPC only"
        return GROUP.fail(SUBNETS, f"they are in {len(vpcs)} VPCs: {', '.join(vpcs)}", fix, "one VPC")
    wrong = [
        f"{subnet['SubnetId']} is in {subnet['AvailabilityZone']}"
        for subnet in subnets
        if subnet["AvailabilityZone"] != network.subnets[subnet["SubnetId"]]
    ]
    if wrong:
        return GROUP.fail(SUBNETS, "; ".join(wrong), f"Correct the zones in `network.subnets` of {_FILE}")
    zones = ", ".join(sorted({subnet["AvailabilityZone"] for subnet in subnets}))
    return GROUP.ok(SUBNETS, f"{len(subnets)} of {vpcs[0]}, in {zones}")


def _check_security_groups(ctx: DeploymentContext, network: Network, vpc_id: str) -> Check:
    """Raises ClientError."""
    wanted = list(network.security_groups)
    try:
        groups = ctx.client("ec2").describe_security_groups(GroupIds=wanted)["SecurityGroups"]
    except ClientError as error:
        if read_error_code(error) not in _GROUP_MISSING:
            raise
        message = error.response["Error"]["Message"]
        return GROUP.fail(SECURITY_GROUPS, message, f"Correct `network.security_groups` in {_FILE}")
    foreign = [group["GroupId"] for group in groups if group["VpcId"] != vpc_id]
    if foreign:
        fix = f"Name security groups of {vpc_id}, in which the subnets are"
        return GROUP.fail(SECURITY_GROUPS, f"{', '.join(foreign)}: of another VPC", fix, vpc_id)
    if not any(_lets_itself_in(group) for group in groups):
        own = (
            f"aws ec2 authorize-security-group-ingress --group-id {wanted[0]} --protocol tcp --port 0-65535 "
            f"--source-group {wanted[0]}"
        )
        return GROUP.fail(
            SECURITY_GROUPS,
            "none lets its own members reach each other, and Glue's workers talk to each other",
            f"Add the rule: `{own}`",
            "a rule from the group to itself, for all TCP ports",
        )
    return GROUP.ok(SECURITY_GROUPS, ", ".join(wanted))


def _lets_itself_in(group: dict[str, Any]) -> bool:
    for rule in group.get("IpPermissions", []):
        sources = [pair.get("GroupId") for pair in rule.get("UserIdGroupPairs", [])]
        all_ports = rule.get("IpProtocol") == "-1" or (
            rule.get("IpProtocol") == "tcp" and (rule.get("FromPort"), rule.get("ToPort")) == (0, 65535)
        )
        if group["GroupId"] in sources and all_ports:
            return True
    return False


def _read_vpc(ctx: DeploymentContext, vpc_id: str, subnets: Sequence[dict[str, Any]]) -> _Vpc:
    """Raises ClientError."""
    of_vpc = [{"Name": "vpc-id", "Values": [vpc_id]}]
    tables: list[dict[str, Any]] = []
    for page in list_pages(ctx, "ec2", "describe_route_tables", Filters=of_vpc):
        tables += page["RouteTables"]
    endpoints = set()
    for page in list_pages(ctx, "ec2", "describe_vpc_endpoints", Filters=of_vpc):
        for endpoint in page["VpcEndpoints"]:
            if endpoint.get("State", "").lower() == "available":
                endpoints.add(endpoint["ServiceName"].removeprefix(f"com.amazonaws.{ctx.region}."))
    return _Vpc(vpc_id, subnets, tables, frozenset(endpoints))


def _check_way_out(ctx: DeploymentContext, vpc: _Vpc, subnet_id: str) -> Check:
    name = f"way out of {subnet_id}"
    route = vpc.find_default_route(subnet_id)
    way = next((route[target] for target in _WAYS_OUT if route.get(target)), "") if route else ""
    if way:
        return GROUP.ok(name, f"through {way}")
    public = route.get("GatewayId", "") if route else ""
    why = f"its route leads to {public}, and functions and jobs have no public address" if public else ""
    missing = [service for service in _SERVICES if service not in vpc.endpoints]
    if missing:
        return GROUP.fail(
            name,
            f"{why or 'it has no route to other networks'}, and {vpc.id} has no endpoints for "
            f"{', '.join(missing)}",
            "Name a subnet with a route to a NAT gateway or a transit gateway, or add VPC endpoints for "
            "these services",
        )
    vendors = " and ".join(_list_vendors(ctx))
    if vendors and not ctx.deployment.proxy:
        return GROUP.fail(
            name,
            f"AWS is reachable through endpoints, but there is no way to {vendors}",
            "Set `network.proxy`, or name a subnet with a route to a NAT gateway or a transit gateway",
        )
    through = f" and the proxy {ctx.deployment.proxy}" if ctx.deployment.proxy else ""
    return GROUP.ok(name, f"through endpoints of {vpc.id}{through}")


def _list_vendors(ctx: DeploymentContext) -> Iterator[str]:
    """Yield whom functions and jobs call besides AWS."""
    deployment = ctx.deployment
    if deployment.confluent or deployment.managed_tables:
        yield "Confluent"
    if deployment.uses_snowflake:
        yield "Snowflake"


def _find_active_default(table: dict[str, Any]) -> dict[str, Any] | None:
    for route in table.get("Routes", []):
        if route.get("DestinationCidrBlock") == _EVERYWHERE and route.get("State", "active") == "active":
            return dict(route)
    return None
