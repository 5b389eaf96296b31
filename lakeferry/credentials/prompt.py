"""Read a key from standard input or prompts and check its format. Secrets are never echoed."""

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
_MIN_SECRET_LENGTH: Final = 32
#: Names of the fields in the output of the vendors' tools and in Lakeferry's secrets.
_IDS: Final = ("apiKey", "api_key", "key")
_SECRETS: Final = ("apiSecret", "api_secret", "secret")
_PRIVATE_KEYS: Final = ("privateKey", "private_key")
_END: Final = "-----END "
_PEM: Final = "-----BEGIN "


def read_api_key(output: Output, key_id: str | None) -> ApiKey:
    """Read an API key from prompts, or as two lines or JSON from standard input. Raises CommandFailed."""
    if output.can_prompt:
        return _check_api_key(
            key_id or output.ask("API key's id"), _ask_hidden(output, "API secret (not shown): ")
        )
    return _check_api_key(
        *_split_api_key(_read_stdin("id and secret of the API key, each on its own line"), key_id)
    )


def read_private_key(output: Output) -> KeyPair:
    """Read a private key from prompts, or as PEM or JSON from standard input. Raises CommandFailed."""
    if output.can_prompt:
        text = _ask_hidden(
            output, "Private key: paste it with its BEGIN and END lines (not shown): ", until=_END
        )
        is_encrypted = "ENCRYPTED" in text.partition("\n")[0]
        passphrase = _ask_hidden(output, "Its passphrase (not shown): ") if is_encrypted else ""
    else:
        text, passphrase = _split_private_key(_read_stdin("the private key, as PEM"))
    try:
        return keypair.load(Secret(text), Secret(passphrase) if passphrase else None)
    except UnusableKey as unusable:
        raise _explain_unreadable(text, passphrase, str(unusable)) from None


def _read_stdin(what: str) -> str:
    """Return all of standard input.

    Raises CommandFailed if it is empty, or a terminal, on which this session can't prompt.
    """
    text = "" if sys.stdin.isatty() else sys.stdin.read().strip()
    if not text:
        hint = "Run it on a terminal without --json, or pass the value on standard input: `… < FILE`"
        raise CommandFailed("SECRETS-INPUT", f"nothing was given: {what}", hint)
    return text


def _split_api_key(text: str, key_id: str | None) -> tuple[str, str]:
    if fields := _parse_json(text):
        return key_id or _pick_first(fields, _IDS), _pick_first(fields, _SECRETS)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if key_id:
        lines = [key_id, *(line for line in lines if line != key_id)]
    if len(lines) != 2:
        hint = "Give id and secret in two lines, or the secret alone and the id with --key-id"
        raise CommandFailed("SECRETS-INPUT", f"standard input has {len(lines)} lines, not 2", hint)
    return lines[0], lines[1]


def _check_api_key(key_id: str, secret: str) -> ApiKey:
    """Return the key. Raises CommandFailed if it can't be an API key of Confluent."""
    if _KEY_ID.fullmatch(secret) and len(key_id) >= _MIN_SECRET_LENGTH:
        raise _explain_malformed(
            "the id and the secret are the wrong way round",
            "Give the id first: it has 16 capital letters and digits",
        )
    if not _KEY_ID.fullmatch(key_id):
        raise _explain_malformed(
            f"an API key's id has 16 capital letters and digits, and this one has {len(key_id)} characters",
            "Copy it again",
        )
    if len(secret) < _MIN_SECRET_LENGTH or re.search(r"\s|[\"']", secret):
        hint = "Copy it again, without quotes. Confluent shows it once, when the key is created"
        raise _explain_malformed(
            f"this is not an API secret: it has {len(secret)} characters, or contains blanks or quotes", hint
        )
    return ApiKey(key_id, Secret(secret))


def _split_private_key(text: str) -> tuple[str, str]:
    if fields := _parse_json(text):
        return _pick_first(fields, _PRIVATE_KEYS), fields.get("passphrase", "")
    return text, ""


def _explain_unreadable(text: str, passphrase: str, why: str) -> CommandFailed:
    head = text.strip().partition("\n")[0]
    if head.startswith("ssh-") or "PUBLIC KEY" in head:
        return CommandFailed("SECRETS-PEM", "this is a public key", "Give the private key, as PKCS#8 in PEM")
    if "ENCRYPTED" in head and not passphrase:
        hint = (
            'Run it on a terminal, which asks for the passphrase, or give JSON: {"privateKey": …, '
            '"passphrase": …}'
        )
        return CommandFailed("SECRETS-PEM", "the private key has a passphrase, and none was given", hint)
    if head.startswith(_PEM) and ("RSA PRIVATE" in head or "OPENSSH" in head):
        hint = (
            "Convert it to PKCS#8 with `openssl pkcs8 -topk8 -nocrypt -in OLD -out NEW`, or generate a new "
            "one: --generate"
        )
        return CommandFailed("SECRETS-PEM", f"the private key can't be read: {why}", hint)
    hint = (
        "Give all of it, with its BEGIN and END lines. `openssl genrsa 3072 | openssl pkcs8 -topk8 "
        "-nocrypt` creates one"
    )
    return CommandFailed("SECRETS-PEM", f"the private key can't be read: {why}", hint)


def _explain_malformed(message: str, hint: str) -> CommandFailed:
    return CommandFailed("SECRETS-SHAPE", message, hint)


def _parse_json(text: str) -> dict[str, str]:
    """Return the fields of a JSON object, {} for any other text."""
    try:
        fields = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(fields, dict):
        return {}
    return {str(name): str(value) for name, value in fields.items()}


def _pick_first(fields: dict[str, str], names: tuple[str, ...]) -> str:
    for name in names:
        if fields.get(name):
            return fields[name]
    hint = (
        "Its fields are apiKey and apiSecret for Confluent, privateKey and perhaps passphrase for Snowflake"
    )
    raise CommandFailed("SECRETS-INPUT", f"the JSON has no {names[0]}", hint)


def _ask_hidden(output: Output, question: str, until: str = "") -> str:
    """Read one line, or all lines up to the first with `until`, without echo.

    Also with `until`, only one line is read if it doesn't begin a PEM block.
    """
    lines = []
    with _turn_off_echo():
        output.err.print(question, markup=False, end="")  # after echo is off, because some people type ahead
        for line in sys.stdin:
            lines.append(line)
            if not until or until in line or (len(lines) == 1 and _PEM not in line):
                break
    output.err.print("")
    return "".join(lines).strip()


@contextmanager
def _turn_off_echo() -> Iterator[None]:
    """Turn off the terminal's echo.

    `getpass` can't be used: it discards the rest of a pasted text between two prompts.
    """
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    quiet = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
    termios.tcsetattr(terminal, termios.TCSADRAIN, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
