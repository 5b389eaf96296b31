"""Functions and Glue jobs in a VPC.

- lambda_vpc: CreateFunction and UpdateFunctionConfiguration refuse (InvalidParameterValueException) a subnet
  or security group that doesn't exist, several VPCs, subnets without groups or the reverse, and a role that
  may not create, describe and delete network interfaces; and (AccessDeniedException) a caller that may not
  describe subnets and groups. The same counts for functions of stacks, which keep their VpcConfig. Stock
  accepts everything, and drops the property in stacks. Source: Lambda developer guide, "Giving Lambda
  functions access to resources in an Amazon VPC"; the words are those of public bug reports.
- glue_connections: CreateConnection with a name that exists is AlreadyExistsException. A run of a job with
  connections is FAILED if no connection works: it doesn't exist, its subnet or security group doesn't, the
  subnet is in another zone, no group lets its own members reach each other on all TCP ports, the subnet has
  neither an endpoint for S3 nor a NAT gateway, or the job's role lacks what the managed policy
  AWSGlueServiceRole has for connections. Stock ignores connections. Source: Glue developer guide, "Setting up
  networking for development for AWS Glue" and "Troubleshooting errors in AWS Glue".

Less strict than AWS: packets are not simulated. Functions and jobs reach everything whatever routes, rules,
endpoints and proxies the network has, and no network interfaces are created.

See stock: `.venv/bin/python -m pytest simulators/tests/aws/test_patches.py -m simulators
-k "stock and network"`
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from simulators.aws import keys, network
from simulators.aws.answers import Provisioned, ProvisioningFailed, build_json_error
from simulators.aws.hooks import Answer, Original, Patch, import_ministack

FUNCTIONS = Patch("lambda_vpc")
_LAMBDA: Final = "ministack.services.lambda_svc"
_FUNCTION: Final = "AWS::Lambda::Function"


@FUNCTIONS.replaces(_LAMBDA, "_create_function", "data")
def create_function(original: Original, data: dict[str, Any]) -> Answer:
    refusal = _find_refusal(data.get("VpcConfig"), data.get("Role", ""))
    return build_json_error(*refusal) if refusal else original(data)


@FUNCTIONS.replaces(_LAMBDA, "_update_config", "name data")
def update_function(original: Original, name: str, data: dict[str, Any]) -> Answer:
    current = import_ministack("services.lambda_svc")._functions.get(name) or {"config": {}}
    vpc = data.get("VpcConfig") or current["config"].get("VpcConfig")
    refusal = _find_refusal(vpc, data.get("Role") or current["config"].get("Role", ""))
    return build_json_error(*refusal) if refusal else original(name, data)


@FUNCTIONS.provisions(_FUNCTION, "create", original=True)
def provision_function(
    original: Callable[..., Provisioned], logical_id: str, props: dict[str, Any], stack_name: str
) -> Provisioned:
    _require_network(props)
    name, attributes = original(logical_id, props, stack_name)
    _keep_network(name, props)
    return name, attributes


@FUNCTIONS.provisions(_FUNCTION, "update", original=True)
def update_function_of_stack(
    original: Callable[..., Provisioned],
    physical_id: str,
    old: dict[str, Any],
    new: dict[str, Any],
    *arguments: Any,
) -> Provisioned:
    _require_network(new)
    name, attributes = original(physical_id, old, new, *arguments)
    _keep_network(name, new)
    return name, attributes


def _find_refusal(vpc: dict[str, Any] | None, role_arn: str) -> network.Refusal | None:
    caller = keys.DEPLOYER.get() or import_ministack("core.iam_evaluator").caller_arn()
    return network.find_refusal_of_function(vpc or {}, role_arn, caller)


def _require_network(props: dict[str, Any]) -> None:
    """Raise ProvisioningFailed if Lambda refuses the function's VpcConfig."""
    if refusal := _find_refusal(props.get("VpcConfig"), props.get("Role", "")):
        raise ProvisioningFailed(f"{refusal.message} (Service: Lambda, Status Code: 400, {refusal.code})")


def _keep_network(name: str, props: dict[str, Any]) -> None:
    functions = import_ministack("services.lambda_svc")
    functions._functions[name]["config"]["VpcConfig"] = functions._vpc_config_with_id(props.get("VpcConfig"))


CONNECTIONS = Patch("glue_connections")


@CONNECTIONS.replaces("ministack.services.glue", "_create_connection", "data")
def create_connection(original: Original, data: dict[str, Any]) -> Answer:
    name = (data.get("ConnectionInput") or {}).get("Name")
    if name in import_ministack("services.glue")._connections:
        return build_json_error("AlreadyExistsException", f"Connection already exists: {name}")
    return original(data)


PATCHES: Final = (
    FUNCTIONS,
    CONNECTIONS,
)
