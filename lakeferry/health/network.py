"""The VPC that the deployment file names: whether functions and jobs can run in it and reach AWS and vendors.

Sources: Lambda developer guide, "Giving Lambda functions access to resources in an Amazon VPC"; Glue's
developer guide, "Setting up Amazon VPC for JDBC connections" (the security group's own rule); VPC user guide,
"Route tables" and "Share your VPC subnets". Network ACLs and rules for outgoing traffic are not checked.

A way out is missing only if the whole route table was read and leads nowhere else. With other routes, or in a
VPC that another account shares, AWS may be reachable in ways that this account does not show.
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
#: Fields with the target of a route.
_TARGETS: Final = (
    "GatewayId", "NatGatewayId", "TransitGatewayId", "InstanceId", "NetworkInterfaceId",
    "VpcPeeringConnectionId", "LocalGatewayId", "CarrierGatewayId", "CoreNetworkArn",
)  # fmt: skip
#: Targets that lead out of no private subnet: the VPC itself, its gateway endpoints, and internet gateways,
#: because functions and jobs have no public address.
_NO_WAY_OUT: Final = ("local", "vpce-", "igw-")
#: AWS's services that functions, jobs and CDK's provider framework call.
_SERVICES: Final = (
    "s3", "dynamodb", "secretsmanager", "cloudformation", "lambda", "states", "glue", "sns", "events",
    "monitoring",
)  # fmt: skip


@attrs.frozen
class _Vpc:
    """`endpoints` has the services that have an endpoint of the VPC, such as s3."""

    id: str
    route_tables: Sequence[dict[str, Any]]
    endpoints: frozenset[str]

    def find_routes(self, subnet_id: str) -> dict[str, str] | None:
        """Return the targets of the subnet's active routes by their destination, from its own or the VPC's
        main route table. Return None if no table is shown.
        """
        main = None
        for table in self.route_tables:
            for association in table.get("Associations", []):
                if association.get("SubnetId") == subnet_id:
                    return _list_targets(table)
                if association.get("Main"):
                    main = table
        return _list_targets(main) if main else None


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
        return [GROUP.fail(SUBNETS, message, fix), *GROUP.skip_all_unseen((SECURITY_GROUPS,), "not checked")]
    checks = [_check_subnets(network, subnets)]
    vpc_id = subnets[0]["VpcId"]
    checks.append(
        runner.attempt(GROUP, SECURITY_GROUPS, lambda: _check_security_groups(ctx, network, vpc_id))
    )
    vpc = _read_vpc(ctx, vpc_id)
    for subnet in subnets:
        checks.append(_check_way_out(ctx, vpc, subnet))
    return checks


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
    if ctx.deployment.exports and not any(_lets_itself_in(group) for group in groups):
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
    """Return whether a rule opens all TCP ports, to the group's own members or to addresses. Glue accepts
    both; whether the addresses are those of its workers is not checked.
    """
    for rule in group.get("IpPermissions", []):
        protocol = rule.get("IpProtocol")
        ports = (rule.get("FromPort"), rule.get("ToPort"))
        opens_all_ports = protocol == "-1" or (protocol == "tcp" and ports == (0, 65535))
        members = [pair.get("GroupId") for pair in rule.get("UserIdGroupPairs", [])]
        if opens_all_ports and (group["GroupId"] in members or rule.get("IpRanges")):
            return True
    return False


def _read_vpc(ctx: DeploymentContext, vpc_id: str) -> _Vpc:
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
    return _Vpc(vpc_id, tables, frozenset(endpoints))


def _check_way_out(ctx: DeploymentContext, vpc: _Vpc, subnet: dict[str, Any]) -> Check:
    subnet_id = subnet["SubnetId"]
    name = f"way out of {subnet_id}"
    routes = vpc.find_routes(subnet_id)
    default = (routes or {}).get(_EVERYWHERE, "")
    if default and not default.startswith(_NO_WAY_OUT):
        return GROUP.ok(name, f"through {default}")
    others = [target for target in (routes or {}).values() if not target.startswith(_NO_WAY_OUT)]
    missing = [service for service in _SERVICES if service not in vpc.endpoints]
    vendors = " and ".join(_list_vendors(ctx))
    proxy = ctx.deployment.proxy
    if not missing and (proxy or not vendors):
        through = f" and the proxy {proxy}" if proxy else ""
        return GROUP.ok(name, f"through endpoints of {vpc.id}{through}")
    is_shared = subnet.get("OwnerId", ctx.account) != ctx.account
    if routes is None or others or is_shared:
        return _warn_of_unknown_way(ctx, name, vpc, others, is_shared=is_shared)
    if not missing:
        return GROUP.fail(
            name,
            f"AWS is reachable through endpoints, but there is no way to {vendors}",
            "Set `network.proxy`, or name a subnet with a route to a NAT gateway or a transit gateway",
        )
    why = "it has no route to other networks"
    if default:
        why = f"its route leads to {default}, and functions and jobs have no public address"
    return GROUP.fail(
        name,
        f"{why}, and {vpc.id} has no endpoints for {', '.join(missing)}",
        "Name a subnet with a route to a NAT gateway or a transit gateway, or add VPC endpoints for these "
        "services",
    )


def _warn_of_unknown_way(
    ctx: DeploymentContext, name: str, vpc: _Vpc, others: Sequence[str], *, is_shared: bool
) -> Check:
    why = f"you see no route table of {vpc.id}"
    if is_shared:
        why = f"another account shares {vpc.id}, so you may not see all of it"
    elif others:
        why = f"it has routes to {', '.join(dict.fromkeys(others))}, but none to all addresses"
    called = " and ".join(["AWS", *_list_vendors(ctx)])
    return GROUP.warn_unseen(
        name, f"not known: {why}", f"Ask the owner of the network whether {called} can be reached from it"
    )


def _list_vendors(ctx: DeploymentContext) -> Iterator[str]:
    """Yield whom functions and jobs call besides AWS."""
    deployment = ctx.deployment
    if deployment.confluent or deployment.managed_tables:
        yield "Confluent"
    if deployment.uses_snowflake:
        yield "Snowflake"


def _list_targets(table: dict[str, Any]) -> dict[str, str]:
    targets = {}
    for route in table.get("Routes", []):
        if route.get("State", "active") != "active":
            continue
        destination = route.get("DestinationCidrBlock") or route.get("DestinationPrefixListId") or ""
        target = next((route[field] for field in _TARGETS if route.get(field)), "")
        if destination and target:
            targets[destination] = target
    return targets
