"""Probes: how AWS differs from stock MiniStack in SES."""

import hashlib
import itertools
import json
from email.message import EmailMessage

from simulators.tests.aws.probe_kit import probe
from simulators.tests.aws.probes_sns import inbox, page_of
from simulators.tests.aws.stack_kit import Stack
from tests.support import runtime_kit as kit
from tests.support.aws_clients import error_of, policy
from tests.support.runtime_kit import letter, new_queue

_numbers = itertools.count(1)
DOMAIN = "reports.example.com"
SENDER = f"exports@{DOMAIN}"


def verified(aws):
    """A client of version 2, in an account where the sender's domain is verified."""
    ses = aws.client("sesv2")
    if error_of(ses.create_email_identity, EmailIdentity=DOMAIN) not in (None, "AlreadyExistsException"):
        raise AssertionError(DOMAIN)
    return ses


def asking(recipient, *, attached=b"", **given):
    message = EmailMessage()
    message["From"] = f"Exports <{SENDER}>"
    message["To"] = recipient
    message["Subject"] = "Sales of June"
    message.set_content("All is there.")
    message.add_alternative("<p>All is <b>there</b>.</p><script>x</script>", subtype="html")
    if attached:
        message.add_attachment(attached, maintype="text", subtype="csv", filename="sales.csv")
    return {
        "FromEmailAddress": SENDER,
        "Destination": {"ToAddresses": [recipient]},
        "Content": {"Raw": {"Data": message.as_bytes()}},
        **given,
    }


def new_recipient():
    return f"reader-of-ses-{next(_numbers)}@example.com"


def role_of(aws, actions, condition=None, resources=None):
    """A client of a role that may do this."""
    role = aws.new_role(("ses:GetAccount", "*"))
    allow = {"Effect": "Allow", "Action": actions, "Resource": resources or "*"}
    if condition:
        allow["Condition"] = {"StringEquals": {"ses:FromAddress": condition}}
    aws.iam.put_role_policy(RoleName=role.rpartition("/")[2], PolicyName="own", PolicyDocument=policy(allow))
    return aws.assuming(role).client("sesv2")


@probe("ses_permissions")
def raw_content_needs_a_permission_of_its_own(aws):
    verified(aws)
    clients = [role_of(aws, "ses:SendEmail"), role_of(aws, ["ses:SendEmail", "ses:SendRawEmail"])]
    codes = [error_of(client.send_email, **asking(new_recipient())) for client in clients]
    return codes == ["AccessDeniedException", None]


@probe("ses_permissions")
def lets_a_role_send_from_its_own_address_only(aws):
    verified(aws)
    clients = [role_of(aws, "ses:SendRawEmail", address) for address in (SENDER, f"other@{DOMAIN}")]
    codes = [error_of(client.send_email, **asking(new_recipient())) for client in clients]
    return codes == [None, "AccessDeniedException"]


@probe("ses_permissions")
def wants_the_senders_identity_and_the_configuration_set(aws):
    ses = verified(aws)
    name = f"set-{next(_numbers)}"
    ses.create_configuration_set(ConfigurationSetName=name)
    arns = [aws.arn("ses", f"identity/{DOMAIN}"), aws.arn("ses", f"configuration-set/{name}")]
    clients = [
        role_of(aws, "ses:SendRawEmail", resources=resources) for resources in (arns, arns[:1], arns[1:])
    ]
    asked = asking(new_recipient(), ConfigurationSetName=name)
    codes = [error_of(client.send_email, **asked) for client in clients]
    return codes == [None, "AccessDeniedException", "AccessDeniedException"]


@probe("ses_mail")
def a_mail_arrives_with_its_html_and_attachments(aws):
    ses = verified(aws)
    recipient = new_recipient()
    content = b"a,b\r\n"
    ses.send_email(**asking(recipient, attached=content))
    attached = {"name": "sales.csv", "type": "text/csv", "size": 5}
    return [
        (mail["subject"], mail["sender"], mail["body"], mail["html"][:24], mail["attachments"])
        for mail in inbox(aws, recipient)
    ] == [
        (
            "Sales of June",
            f"Exports <{SENDER}>",
            "All is there.\n",
            "<p>All is <b>there</b>.<",
            [attached | {"sha256": hashlib.sha256(content).hexdigest()}],
        )
    ]


@probe("ses_mail")
def shows_html_without_running_it(aws):
    ses = verified(aws)
    recipient = new_recipient()
    ses.send_email(**asking(recipient))
    page = page_of(aws, "mail.html", recipient) or ""
    return "<iframe sandbox" in page and "&lt;script&gt;" in page and "<script>" not in page


@probe("ses_mail")
def refuses_an_unknown_configuration_set(aws):
    asked = asking(new_recipient(), ConfigurationSetName="missing")
    return error_of(verified(aws).send_email, **asked) == "NotFoundException"


def configuration_set(aws, *types):
    name = f"set-{next(_numbers)}"
    Stack(aws, "AWS::SES::ConfigurationSet", Name=name)
    destination = {
        "Name": "bus",
        "Enabled": True,
        "MatchingEventTypes": list(types),
        "EventBridgeDestination": {"EventBusArn": aws.arn("events", "event-bus/default")},
    }
    Stack(
        aws,
        "AWS::SES::ConfigurationSetEventDestination",
        ConfigurationSetName=name,
        EventDestination=destination,
    )
    return name


@probe("ses_events")
def bounces_and_complaints_become_events(aws):
    ses = verified(aws)
    name = configuration_set(aws, "bounce", "complaint")
    rule = kit.new_rule(
        aws, {"source": ["aws.ses"], "detail": {"mail": {"tags": {"ses:configuration-set": [name]}}}}
    )
    url, arn = new_queue(aws, lets_in=rule[1])
    aws.client("events").put_targets(Rule=rule[0], Targets=[{"Id": "1", "Arn": arn}])
    received = []
    for local in ("success", "bounce", "complaint"):
        asked = asking(
            f"{local}@simulator.amazonses.com",
            ConfigurationSetName=name,
            EmailTags=[{"Name": "export", "Value": "weekly_sales"}],
        )
        ses.send_email(**asked)
        if local == "success":
            continue
        body, _ = letter(aws, url, kit.patience(aws))
        event = json.loads(body or '{"detail": {"mail": {"tags": {}}}}')
        detail = event["detail"]
        received.append(
            (event.get("detail-type"), detail.get("eventType"), detail["mail"]["tags"].get("export"))
        )
        aws.client("sqs").purge_queue(QueueUrl=url)
    return received == [
        ("Email Bounced", "Bounce", ["weekly_sales"]),
        ("Email Complaint Received", "Complaint", ["weekly_sales"]),
    ]
