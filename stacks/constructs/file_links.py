"""Links that open files without an AWS login: an HTTP API, its function, the key that signs, its rotation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from aws_cdk import Duration, Stack
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from lambdas import contract
from lambdas.shared.settings import LinkSettings, RotationSettings
from stacks.constructs.function import WITHOUT_DEAD_LETTERS, PythonFunction, log_group
from stacks.constructs.mail import create_alarm, find_alarm_topic
from stacks.constructs.rotation import KeyRotation
from stacks.constructs.runtime import Runtime
from stacks.constructs.secrets import StackSecrets, may_encrypt_files
from stacks.constructs.statements import ONE_PREFIX, Statement, acknowledge, allow
from stacks.constructs.synthesis import build_own_arn
from stacks.lake import Lake

#: The path of the secret below the deployment's prefix.
KEY_PATH: Final = "links/signing_key"
#: Requests in a second that API Gateway lets through, on average and at once. The others get status 429, and
#: start no function.
_RATE: Final = 20
_BURST: Final = 40
#: API Gateway waits for at most 30 seconds.
_TIMEOUT_SECONDS: Final = 29
#: So many refused links in a quarter of an hour are more than mistakes of people.
_REFUSED: Final = 20
_ACCESS_LOG: Final = {
    # Without path and query: the path has the token.
    "request": "$context.requestId",
    "time": "$context.requestTime",
    "route": "$context.routeKey",
    "status": "$context.status",
    "ip": "$context.identity.sourceIp",
    "milliseconds": "$context.responseLatency",
    "error": "$context.integrationErrorMessage",
}


class FileLinks(Construct):
    """`settings_url` is the object with the exports, `exports` are the names of those with links, and
    `longest_days` is for how long the longest link works.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        runtime: Runtime,
        lake: Lake,
        exports: Sequence[str],
        settings_url: str,
        may_read_settings: Statement,
        longest_days: int,
        rotation_days: int,
        grace_days: int,
    ) -> None:
        super().__init__(scope, id)
        self._lake = lake
        self._runtime = runtime
        self.secrets = StackSecrets(
            self, "Secrets", runtime=runtime, purpose=f"Encrypts the key of links of {runtime.prefix}"
        )
        self.secret = self.secrets.generated(
            "SigningKey", KEY_PATH, f"Signs links of {runtime.prefix}", contract.LINK_KEY_FIELD
        )
        rotation = KeyRotation(
            self,
            "Rotation",
            runtime=runtime,
            secrets=self.secrets,
            provider=None,
            settings=RotationSettings(link_days=str(longest_days)),
            grace_days=grace_days,
        )
        rotation.rotate(self.secret, every=Duration.days(rotation_days))
        self._function = PythonFunction(
            self,
            "Open",
            runtime=runtime,
            handler=contract.OPEN_LINK,
            purpose="Opens links in mails",
            environment=LinkSettings(
                bucket=lake.bucket,
                prefix=lake.prefixes.exports,
                links=lake.prefixes.links,
                settings=settings_url,
                secret=self.secret.arn,
                deployment=runtime.prefix,
            ).to_environment(),
            statements=[*self._may_open(exports), may_read_settings, *self.may_read_key()],
            timeout_seconds=_TIMEOUT_SECONDS,
        )
        acknowledge(
            self._function,
            "API Gateway invokes it and waits: the person who follows a link gets the error.",
            *WITHOUT_DEAD_LETTERS,
        )
        self.api = self._create_api()
        self._alarm_on_refused()

    @property
    def url(self) -> str:
        """Return the address of the API, without a slash at the end."""
        return self.api.attr_api_endpoint

    def may_read_key(self) -> list[Statement]:
        """Return what reading the signing key needs."""
        return [
            allow("ReadLinkKey", ["secretsmanager:GetSecretValue"], [self.secret.arn]),
            self.secrets.may_decrypt(),
        ]

    def _may_open(self, exports: Sequence[str]) -> list[Statement]:
        """Return what the function may do. A presigned URL can't do more than the role that signs it."""
        arn = self._lake.arn
        folder = f"{arn}/{self._lake.prefixes.exports}"
        published = [
            f"{folder}/{name}/{part}/*" for name in exports for part in ("data", "manifests", "runs")
        ]
        counted = [f"{arn}/{self._lake.prefixes.links}/*"]
        return [
            allow("ReadPublished", ["s3:GetObject"], published, why=ONE_PREFIX),
            allow("CountDownloads", ["s3:GetObject", "s3:PutObject"], counted, why=ONE_PREFIX),
            # Without a condition on the prefix: with one, S3 answers 403 instead of 404 for a count that
            # doesn't exist yet.
            allow("FindCounts", ["s3:ListBucket"], [arn]),
            *may_encrypt_files(self, self._lake.key_arn),
        ]

    def _create_api(self) -> apigateway.CfnApi:
        api = apigateway.CfnApi(
            self,
            "Api",
            name=f"{self._runtime.prefix}-links",
            description="Opens links in mails",
            protocol_type="HTTP",
        )
        integration = apigateway.CfnIntegration(
            self,
            "Integration",
            api_id=api.ref,
            integration_type="AWS_PROXY",
            integration_uri=self._function.arn,
            payload_format_version="2.0",
        )
        routes = []
        for method in ("GET", "POST"):
            route = apigateway.CfnRoute(
                self,
                f"{method.capitalize()}Route",
                api_id=api.ref,
                route_key=f"{method} /{contract.LINK_PATH}/{{token}}",
                authorization_type="NONE",
                target=f"integrations/{integration.ref}",
            )
            acknowledge(
                route,
                "Whoever opens a link has no AWS login: the function verifies the token in the link.",
                "AwsSolutions-APIG4",
            )
            routes.append(route)
        logs = log_group(self, "AccessLogs", runtime=self._runtime)
        stage = apigateway.CfnStage(
            self,
            "Stage",
            api_id=api.ref,
            stage_name="$default",
            auto_deploy=True,
            access_log_settings=apigateway.CfnStage.AccessLogSettingsProperty(
                destination_arn=logs.log_group_arn, format=json.dumps(_ACCESS_LOG)
            ),
            default_route_settings=apigateway.CfnStage.RouteSettingsProperty(
                throttling_rate_limit=_RATE, throttling_burst_limit=_BURST, detailed_metrics_enabled=True
            ),
        )
        stage.node.add_dependency(*routes)
        lambda_.CfnPermission(
            self,
            "Permission",
            action="lambda:InvokeFunction",
            function_name=self._function.arn,
            principal="apigateway.amazonaws.com",
            source_account=Stack.of(self).account,
            source_arn=build_own_arn(
                self, "execute-api", f"{api.ref}/$default/*/{contract.LINK_PATH}/{{token}}"
            ),
        )
        return api

    def _alarm_on_refused(self) -> None:
        create_alarm(
            self,
            "RefusedAlarm",
            topic=find_alarm_topic(self, "AlarmTopic", self._runtime),
            name=f"{self._runtime.prefix}-{contract.LINKS_REFUSED}",
            description=(
                f"More than {_REFUSED} links of {self._runtime.prefix} opened nothing in 15 minutes. "
                "Somebody may be guessing. The metric has a Reason, and the function's log says which links"
            ),
            metric=cloudwatch.Metric(
                namespace=contract.METRICS,
                metric_name=contract.LINKS_REFUSED,
                dimensions_map={contract.DEPLOYMENT_DIMENSION: self._runtime.prefix},
                period=Duration.minutes(15),
                statistic="Sum",
            ),
            above=_REFUSED,
        )
