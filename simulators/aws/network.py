"""What Lambda and Glue check before they place functions and jobs in subnets of a VPC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from simulators.aws import identity, settings
from simulators.aws.hooks import get_region, import_ministack

_ALL_PORTS: Final = (0, 65535)
#: With this tag Glue marks the network interfaces that it creates.
_TAG_OF_GLUE: Final = {"aws:tagkeys": ["aws-glue-service-resource"]}
_INTERFACES_OF_LAMBDA: Final = (
    "CreateNetworkInterface",
    "DescribeNetworkInterfaces",
    "DeleteNetworkInterface",
)


class Refusal(NamedTuple):
    code: str
    message: str


def find_refusal_of_function(vpc: dict[str, Any], role_arn: str, caller_arn: str) -> Refusal | None:
    """Return why Lambda refuses the VpcConfig of a function, None if it accepts it."""
    subnets = vpc.get("SubnetIds") or []
    groups = vpc.get("SecurityGroupIds") or []
    if not subnets and not groups:
        return None
    if not subnets or not groups:
        return _refuse("SubnetIds and SecurityIds must coexist or be both empty list.")
    return (
        _find_refusal_of_caller(subnets, groups, caller_arn)
        or _find_missing(subnets, groups)
        or _find_several_networks(subnets, groups)
        or _find_refusal_of_role(role_arn)
    )


def _refuse(message: str) -> Refusal:
    return Refusal("InvalidParameterValueException", message)


def _find_refusal_of_caller(subnets: Sequence[str], groups: Sequence[str], caller_arn: str) -> Refusal | None:
    """Lambda looks at subnets and groups with the permissions of its caller."""
    for action, name in (("DescribeSubnets", subnets[0]), ("DescribeSecurityGroups", groups[0])):
        if not identity.may(caller_arn, f"ec2:{action}", "*"):
            return Refusal(
                "AccessDeniedException",
                "Your access has been denied by EC2, please make sure your request credentials have "
                f"permission to {action} for {name}. EC2 Error Code: UnauthorizedOperation. EC2 Error "
                "Message: You are not authorized to perform this operation.",
            )
    return None


def _find_missing(subnets: Sequence[str], groups: Sequence[str]) -> Refusal | None:
    ec2 = _get_ec2()
    for subnet in subnets:
        if subnet not in ec2._subnets:
            return _refuse(
                "Error occurred while DescribeSubnets. EC2 Error Code: InvalidSubnetID.NotFound. EC2 Error "
                f"Message: The subnet ID '{subnet}' does not exist"
            )
    for group in groups:
        if group not in ec2._security_groups:
            return _refuse(
                "Error occurred while DescribeSecurityGroups. EC2 Error Code: InvalidGroup.NotFound. EC2 "
                f"Error Message: The security group '{group}' does not exist"
            )
    return None


def _find_several_networks(subnets: Sequence[str], groups: Sequence[str]) -> Refusal | None:
    ec2 = _get_ec2()
    networks = {ec2._subnets[subnet]["VpcId"] for subnet in subnets}
    if len(networks) > 1:
        return _refuse("Subnets are required to be in the same VPC.")
    if {ec2._security_groups[group]["VpcId"] for group in groups} != networks:
        return _refuse("Security Groups are required to be in the same VPC.")
    return None


def _find_refusal_of_role(role_arn: str) -> Refusal | None:
    for action in _INTERFACES_OF_LAMBDA:
        if not identity.may(role_arn, f"ec2:{action}", "*"):
            return _refuse(f"The provided execution role does not have permissions to call {action} on EC2")
    return None


def find_problem_of_job(job: dict[str, Any], role_arn: str) -> str:
    """Return why Glue can't run the job in its VPC, "" if it can or if the job has no connection."""
    names = (job.get("Connections") or {}).get("Connections") or []
    problems = [next(_check_connection(name, role_arn), "") for name in names]
    # A job needs one connection that works: Glue takes the next one if a subnet can't be used.
    return "" if "" in problems or not problems else problems[0]


def _check_connection(name: str, role_arn: str) -> Iterator[str]:
    """Yield what is wrong with a connection, and with what the role may do in its network."""
    arn = f"arn:aws:glue:{get_region()}:{settings.ACCOUNT}"
    for resource in (f"{arn}:catalog", f"{arn}:connection/{name}"):
        if not identity.may(role_arn, "glue:GetConnection", resource):
            yield (
                f"User: {role_arn} is not authorized to perform: glue:GetConnection on resource: {resource} "
                "because no identity-based policy allows the glue:GetConnection action"
            )
    connection = import_ministack("services.glue")._connections.get(name)
    if connection is None:
        yield f"Connection {name} not found."
        return
    place = connection.get("PhysicalConnectionRequirements") or {}
    subnet_id = place.get("SubnetId", "")
    groups = place.get("SecurityGroupIdList") or []
    yield from _check_role_of_job(role_arn, subnet_id)
    yield from _check_subnet(subnet_id, place.get("AvailabilityZone", ""))
    yield from _check_groups(groups, subnet_id)
    yield from _check_way_to_s3(subnet_id)


def _check_role_of_job(role_arn: str, subnet_id: str) -> Iterator[str]:
    unknown = f"Unable to validate subnet ID: {subnet_id}"
    messages = {
        "DescribeSubnets": "Failed to call ec2:DescribeSubnets",
        "DescribeSecurityGroups": "Failed to call ec2:DescribeSecurityGroups",
        "DescribeVpcEndpoints": f"DescribeVpcEndpoints action is unauthorized. {unknown}",
        "DescribeRouteTables": f"DescribeRouteTables action is unauthorized. {unknown}",
        "DescribeVpcAttribute": "Failed to call ec2:DescribeVpcAttribute",
        "CreateNetworkInterface": "Failed to call ec2:CreateNetworkInterface",
        "DescribeNetworkInterfaces": "Failed to call ec2:DescribeNetworkInterfaces",
        "DeleteNetworkInterface": "Failed to call ec2:DeleteNetworkInterface",
    }
    for action, message in messages.items():
        if not identity.may(role_arn, f"ec2:{action}", "*"):
            yield message
    interface = f"arn:aws:ec2:{get_region()}:{settings.ACCOUNT}:network-interface/eni-0"
    for action in ("CreateTags", "DeleteTags"):
        if not identity.may(role_arn, f"ec2:{action}", interface, _TAG_OF_GLUE):
            yield f"Failed to call ec2:{action}"


def _check_subnet(subnet_id: str, zone: str) -> Iterator[str]:
    subnet = _get_ec2()._subnets.get(subnet_id)
    if subnet is None:
        yield f"The subnet ID '{subnet_id}' does not exist"
    elif subnet["AvailabilityZone"] != zone:
        yield f"Could not find subnet for AZ {zone}: {subnet_id} is in {subnet['AvailabilityZone']}"


def _check_groups(groups: Sequence[str], subnet_id: str) -> Iterator[str]:
    ec2 = _get_ec2()
    for group in groups:
        if group not in ec2._security_groups:
            yield f"The security group '{group}' does not exist"
            return
        if ec2._security_groups[group]["VpcId"] != ec2._subnets.get(subnet_id, {}).get("VpcId"):
            yield f"The security group '{group}' is not in the VPC of {subnet_id}"
    if not any(_lets_its_members_in(ec2._security_groups[group]) for group in groups):
        yield (
            "At least one security group must open all ingress ports. To limit traffic, the source security "
            "group in your inbound rule can be restricted to the same security group"
        )


def _lets_its_members_in(group: dict[str, Any]) -> bool:
    """Return whether a rule of the group opens all TCP ports to the group itself."""
    for rule in group["IpPermissions"]:
        sources = [pair.get("GroupId") for pair in rule["UserIdGroupPairs"]]
        is_all = rule["IpProtocol"] == "-1"
        is_tcp = rule["IpProtocol"] == "tcp" and (rule.get("FromPort"), rule.get("ToPort")) == _ALL_PORTS
        if group["GroupId"] in sources and (is_all or is_tcp):
            return True
    return False


def _check_way_to_s3(subnet_id: str) -> Iterator[str]:
    ec2 = _get_ec2()
    subnet = ec2._subnets.get(subnet_id)
    if subnet is None:
        return
    table = _find_route_table(subnet)
    endpoints = [
        endpoint
        for endpoint in ec2._vpc_endpoints.values()
        if endpoint["ServiceName"] == f"com.amazonaws.{get_region()}.s3"
        and table.get("RouteTableId") in endpoint["RouteTableIds"]
    ]
    has_gateway = any(route.get("NatGatewayId") for route in table.get("Routes", []))
    if not endpoints and not has_gateway:
        yield (
            f"VPC S3 endpoint validation failed for SubnetId: {subnet_id}. VPC: {subnet['VpcId']}. Reason: "
            f"Could not find S3 endpoint or NAT gateway for subnetId: {subnet_id} in Vpc {subnet['VpcId']}"
        )


def _find_route_table(subnet: dict[str, Any]) -> dict[str, Any]:
    """Return the route table of the subnet: its own, or the main one of the VPC."""
    main: dict[str, Any] = {}
    for table in _get_ec2()._route_tables.values():
        for association in table["Associations"]:
            if association.get("SubnetId") == subnet["SubnetId"]:
                return dict(table)
            if association.get("Main") and table["VpcId"] == subnet["VpcId"]:
                main = table
    return main


def _get_ec2() -> Any:
    return import_ministack("services.ec2")
