"""API Gateway: HTTP APIs that are reached, invoke functions that allow it, and are throttled.

- http_api_permission: An HTTP API invokes a function only if the function's policy allows it to
  apigateway.amazonaws.com; otherwise the caller gets 500 and the message "Internal Server Error". Stock
  MiniStack invokes every function. Source: API Gateway developer guide, "Troubleshooting issues with HTTP API
  Lambda integrations"; its source ARN is arn:aws:execute-api:region:account:api/stage/method/path, where the
  path is that of the route.
- http_api_throttling: A stage's default throttling limits are a bucket of tokens: so many requests at once
  and so many in a second. Others get 429 and the message "Too Many Requests". Stock has no limits. Source:
  API Gateway developer guide, "Throttle requests to your HTTP APIs".
- http_api_address: An API's endpoint is an address that every client reaches. Stock's is a name below
  execute-api.localhost, which many systems don't resolve. This patch is specific to this repository.

Less strict than AWS: limits of single routes and of the account are left out, and there are no access logs.

See stock: `.venv/bin/python -m pytest simulators/tests/aws/test_patches.py -m simulators
-k "stock and apigateway"`
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from simulators.aws import identity, settings
from simulators.aws.hooks import Answer, Patch, get_region, import_ministack

_APIS: Final = "ministack.services.apigateway"
_SERVICE: Final = "apigateway.amazonaws.com"
_JSON: Final = {"Content-Type": "application/json"}
Invoke = Callable[..., Awaitable[Answer]]

PERMISSION = Patch("http_api_permission")


@PERMISSION.replaces(
    _APIS,
    "_invoke_lambda_proxy",
    "integration api_id stage path method headers body query_params route_key path_params authorizer_claims "
    "authorizer_scopes authorizer_lambda_context authorizer_iam owner_account_id owner_region "
    "raw_query_string",
)
async def invoke_function(
    original: Invoke,
    integration: dict[str, Any],
    api_id: str,
    stage: str,
    *request: Any,
    **options: Any,
) -> Answer:
    path, method, *_ = request
    apis = import_ministack("services.apigateway")
    arn = apis._extract_lambda_ref_from_integration_uri(integration.get("integrationUri", ""))
    route = (apis._match_route(api_id, method, path) or {}).get("routeKey", "$default")
    _, _, route_path = route.partition(" ")
    source = f"arn:aws:execute-api:{get_region()}:{settings.ACCOUNT}:{api_id}/{stage}/{method}{route_path}"
    policy, _ = import_ministack("services.lambda_svc").function_policy_for_arn(arn) or (None, "")
    if not identity.is_allowed_by_policy(policy, _SERVICE, "lambda:InvokeFunction", arn, source):
        return 500, dict(_JSON), json.dumps({"message": "Internal Server Error"}).encode()
    return await original(integration, api_id, stage, *request, **options)


THROTTLING = Patch("http_api_throttling")
#: By API and stage: the tokens that are left, and when they were counted.
_tokens: Final[dict[tuple[str, str], tuple[float, float]]] = {}


@THROTTLING.replaces(
    _APIS, "handle_execute", "api_id stage path method headers body query_params raw_query_string"
)
async def handle_execute(original: Invoke, api_id: str, stage: str, *others: Any, **options: Any) -> Answer:
    stages = import_ministack("services.apigateway").stages_for_api(api_id) or {}
    limits = (stages.get(stage) or {}).get("defaultRouteSettings") or {}
    if limits and not _take_token(api_id, stage, limits):
        return 429, dict(_JSON), json.dumps({"message": "Too Many Requests"}).encode()
    return await original(api_id, stage, *others, **options)


def _take_token(api_id: str, stage: str, limits: dict[str, Any]) -> bool:
    """CloudFormation's names begin with a capital letter, the API's with a small one."""
    named = {name[0].lower() + name[1:]: value for name, value in limits.items()}
    rate = float(named.get("throttlingRateLimit") or 0)
    burst = float(named.get("throttlingBurstLimit") or 0)
    if not rate or not burst:
        return True
    now = time.monotonic()
    left, counted_at = _tokens.get((api_id, stage), (burst, now))
    left = min(burst, left + (now - counted_at) * rate)
    if left < 1:
        _tokens[api_id, stage] = (left, now)
        return False
    _tokens[api_id, stage] = (left - 1, now)
    return True


ADDRESS = Patch("http_api_address")


@ADDRESS.provisions("AWS::ApiGatewayV2::Api", "create", original=True)
def create_api(
    original: Callable[..., tuple[str, dict[str, Any]]],
    logical_id: str,
    props: dict[str, Any],
    stack_name: str,
) -> tuple[str, dict[str, Any]]:
    api_id, attributes = original(logical_id, props, stack_name)
    address = f"http://{settings.HOST}:{os.environ['GATEWAY_PORT']}/_aws/execute-api/{api_id}"
    import_ministack("services.apigateway")._apis[api_id]["apiEndpoint"] = address
    return api_id, {**attributes, "ApiEndpoint": address}


PATCHES: Final = (
    PERMISSION,
    THROTTLING,
    ADDRESS,
)
