"""Reads a key from standard input or from somebody who types, and looks at its shape. Nothing of it is ever echoed."""

from __future__ import annotations

import json
import re
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from lakeferry.errors import CommandFailed
from lakeferry.output import Output
from lambdas.shared.redaction import ApiKey, Secret
from lambdas.snowflake import keypair
from lambdas.snowflake.keypair import KeyPair, UnusableKey

_KEY_ID: Final = re.compile(r"[A-Z0-9]{16}")
_LEAST_SECRET: Final = 32
#: What the vendor's own tools and our secrets call the two.
_IDS: Final = ("apiKey", "api_key", "key")
_SECRETS: Final = ("apiSecret", "api_secret", "secret")
_PRIVATE_KEYS: Final = ("privateKey", "private_key")
_END: Final = "-----END "
_PEM: Final = "-----BEGIN "


def api_key(output: Output, key_id: str | None) -> ApiKey:
    """From two lines or JSON on standard input, else from prompts. Raises CommandFailed."""
    if output.can_prompt:
        found = (key_id or output.ask("API key's id"), _typed(output, "API secret (not shown): "))
    else:
        found = _api_key_of(_piped("id and secret of the API key, one a line"), key_id)
    return _shaped(*found)


def private_key(output: Output) -> KeyPair:
    """From PEM or JSON on standard input, else from prompts. Raises CommandFailed."""
    if output.can_prompt:
        text = _typed(output, "Private key: paste it with its BEGIN and END lines (not shown): ", until=_END)
        passphrase = _typed(output, "Its passphrase (not shown): ") if "ENCRYPTED" in text.partition("\n")[0] else ""
    else:
        text, passphrase = _private_key_of(_piped("the private key, as PEM"))
    try:
        return keypair.load(Secret(text), Secret(passphrase) if passphrase else None)
    except UnusableKey as unusable:
        raise _unreadable(text, passphrase, str(unusable)) from None


def _piped(what: str) -> str:
    """All of standard input. Raises CommandFailed where somebody sits before it who can't be asked, or it is empty."""
    text = "" if sys.stdin.isatty() else sys.stdin.read().strip()
    if not text:
        hint = "Run it on a terminal without --json, or give the value on standard input: `… < FILE`"
        raise CommandFailed("SECRETS-INPUT", f"nothing was given: {what}", hint)
    return text


def _api_key_of(text: str, key_id: str | None) -> tuple[str, str]:
    if fields := _json(text):
        return key_id or _first(fields, _IDS), _first(fields, _SECRETS)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if key_id:
        lines = [key_id, *(line for line in lines if line != key_id)]
    if len(lines) != 2:
        hint = "Give id and secret in two lines, or the secret alone and the id with --key-id"
        raise CommandFailed("SECRETS-INPUT", f"standard input has {len(lines)} lines, not 2", hint)
    return lines[0], lines[1]


def _shaped(key_id: str, secret: str) -> ApiKey:
    """Raises CommandFailed for what can't be an API key of Confluent."""
    if _KEY_ID.fullmatch(secret) and len(key_id) >= _LEAST_SECRET:
        raise _misshapen("id and secret are the wrong way round", "Give the id first: it has 16 capitals and digits")
    if not _KEY_ID.fullmatch(key_id):
        raise _misshapen(f"an API key's id has 16 capitals and digits, and this has {len(key_id)} signs", "Copy it again")
    if len(secret) < _LEAST_SECRET or re.search(r"\s|[\"']", secret):
        hint = "Copy it again, without quotes; Confluent shows it once, when the key is made"
        raise _misshapen(f"this is no API secret: it has {len(secret)} signs, or blanks or quotes in it", hint)
    return ApiKey(key_id, Secret(secret))


def _private_key_of(text: str) -> tuple[str, str]:
    if fields := _json(text):
        return _first(fields, _PRIVATE_KEYS), fields.get("passphrase", "")
    return text, ""


def _unreadable(text: str, passphrase: str, why: str) -> CommandFailed:
    head = text.strip().partition("\n")[0]
    if head.startswith("ssh-") or "PUBLIC KEY" in head:
        return CommandFailed("SECRETS-PEM", "this is a public key", "Give the private one, as PKCS#8 in PEM")
    if "ENCRYPTED" in head and not passphrase:
        hint = 'Run it on a terminal, which asks for the passphrase, or give JSON: {"privateKey": …, "passphrase": …}'
        return CommandFailed("SECRETS-PEM", "the private key has a passphrase, and none was given", hint)
    if head.startswith(_PEM) and ("RSA PRIVATE" in head or "OPENSSH" in head):
        hint = "Turn it into PKCS#8: `openssl pkcs8 -topk8 -nocrypt -in OLD -out NEW`, or let us make one: --generate"
        return CommandFailed("SECRETS-PEM", f"the private key can't be read: {why}", hint)
    hint = "Give it whole, with its BEGIN and END lines; `openssl genrsa 3072 | openssl pkcs8 -topk8 -nocrypt` makes one"
    return CommandFailed("SECRETS-PEM", f"the private key can't be read: {why}", hint)


def _misshapen(message: str, hint: str) -> CommandFailed:
    return CommandFailed("SECRETS-SHAPE", message, hint)


def _json(text: str) -> dict[str, str]:
    """Empty where it is no JSON object."""
    try:
        fields = json.loads(text)
    except ValueError:
        return {}
    return {str(name): str(value) for name, value in fields.items()} if isinstance(fields, dict) else {}


def _first(fields: dict[str, str], names: tuple[str, ...]) -> str:
    for name in names:
        if fields.get(name):
            return fields[name]
    hint = "Its fields are apiKey and apiSecret for Confluent, privateKey and perhaps passphrase for Snowflake"
    raise CommandFailed("SECRETS-INPUT", f"the JSON has no {names[0]}", hint)


def _typed(output: Output, question: str, until: str = "") -> str:
    """One line, or all lines to the one that holds `until`; what is pasted at once comes whole."""
    lines = []
    with _unseen():
        output.err.print(question, markup=False, end="")  # after the echo is off: some type ahead
        for line in sys.stdin:
            lines.append(line)
            if not until or until in line or (len(lines) == 1 and _PEM not in line):
                break
    output.err.print("")
    return "".join(lines).strip()


@contextmanager
def _unseen() -> Iterator[None]:
    """The terminal doesn't show what is typed. Not `getpass`, which throws away what was pasted before it asks again."""
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    quiet = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
    termios.tcsetattr(terminal, termios.TCSADRAIN, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
