"""Probes: how AWS differs from stock MiniStack in API Gateway's HTTP APIs."""

import itertools
import json
import urllib.error
import urllib.request

from simulators.tests.aws.probe_kit import probe
from simulators.tests.aws.stack_kit import Stack
from tests.support.rotation_kit import new_function

_CODE = {"it.py": "def handler(event, context): return {'statusCode': 200, 'body': 'well'}\n"}
_numbers = itertools.count(1)
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def new_api(aws, **stage):
    """Return an HTTP API with a route to a function, the function, and the address of the route."""
    function = new_function(aws, _CODE, "it.handler")
    apis = aws.client("apigatewayv2")
    api = apis.create_api(Name=f"api-{next(_numbers)}", ProtocolType="HTTP")["ApiId"]
    integration = apis.create_integration(
        ApiId=api, IntegrationType="AWS_PROXY", IntegrationUri=function, PayloadFormatVersion="2.0"
    )["IntegrationId"]
    apis.create_route(ApiId=api, RouteKey="GET /open/{token}", Target=f"integrations/{integration}")
    apis.create_stage(ApiId=api, StageName="$default", AutoDeploy=True, **stage)
    return api, function, f"{aws.server.url}/_aws/execute-api/{api}/open/token"


def permit(aws, function, api, path="open/{token}"):
    region, account = function.split(":")[3:5]
    aws.functions.add_permission(
        FunctionName=function,
        StatementId=f"api-{next(_numbers)}",
        Action="lambda:InvokeFunction",
        Principal="apigateway.amazonaws.com",
        SourceArn=f"arn:aws:execute-api:{region}:{account}:{api}/$default/*/{path}",
    )


def get(address):
    try:
        with _opener.open(address) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())["message"]


@probe("http_api_permission")
def invokes_no_function_without_permission(aws):
    api, function, address = new_api(aws)
    refused = get(address)
    permit(aws, function, api)
    return (refused, get(address)) == ((500, "Internal Server Error"), (200, "well"))


@probe("http_api_permission")
def invokes_no_function_whose_permission_is_for_another_route(aws):
    api, function, address = new_api(aws)
    permit(aws, function, api, "close/{token}")
    return get(address)[0] == 500


@probe("http_api_throttling")
def refuses_more_requests_than_the_stage_allows(aws):
    limits = {"ThrottlingRateLimit": 0.001, "ThrottlingBurstLimit": 2}
    api, function, address = new_api(aws, DefaultRouteSettings=limits)
    permit(aws, function, api)
    return [get(address) for _ in range(3)] == [(200, "well"), (200, "well"), (429, "Too Many Requests")]


@probe("http_api_address")
def an_api_of_a_stack_has_an_address_on_loopback(aws):
    stack = Stack(aws, "AWS::ApiGatewayV2::Api", Name=f"api-{next(_numbers)}", ProtocolType="HTTP")
    endpoint = aws.client("apigatewayv2").get_api(ApiId=stack.resource)["ApiEndpoint"]
    return endpoint == f"{aws.server.url}/_aws/execute-api/{stack.resource}"
