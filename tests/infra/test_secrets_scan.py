"""No secret is in anything that ships or is deployed (I4): templates, metadata, assemblies, assets, the app's
files.
"""

from __future__ import annotations

import pytest

from config.deployments.secret_patterns import find_secrets
from stacks import assets
from tests.support.assembly_kit import ROOT

#: Made-up values with the form of real secrets.
PLANTED = {
    "a private key": "-----BEGIN " + "RSA PRIVATE KEY-----",
    "a secret of Confluent Cloud": "cflt" + "aB3x" * 14,
    "an access key of AWS": "AKIA" + "ABCDEFGH12345678",
    "a token": "eyJ" + "hbGciOiJSUzI1NiJ9" + "." + "eyJpc3MiOiJhY2N0In0",
    "the secret of a key": "aB3/" * 16,
}
#: Findings in packages: a pattern that searches for keys, and an example in a manual.
_EXPECTED = ("cryptography/hazmat/primitives/serialization/ssh.py", "pyjwt-2.15.1.dist-info/METADATA")


def leaks(folder):
    found = []
    for file in sorted(
        entry
        for entry in folder.rglob("*")
        if entry.is_file() and entry.suffix not in (".so", ".zip", ".pem")
    ):
        text = file.read_text(encoding="utf-8", errors="ignore")
        found += [f"{file.relative_to(folder)}:{line} {item}" for line, item in find_secrets(text)]
    return found


def test_an_assembly_has_no_secret(assembly):
    """Its templates, outputs, metadata and staged assets."""
    ours = [leak for leak in leaks(assembly.folder) if not any(word in leak for word in _EXPECTED)]
    assert ours == []
    assert len(list(assembly.folder.rglob("*.json"))) >= 15


def test_assets_have_no_secret():
    ours = [
        leak
        for leak in leaks(assets.build_lambda_folder(assets.aws("3.11")))
        if not any(word in leak for word in _EXPECTED)
    ]
    assert ours == []


def test_the_apps_files_have_no_secret():
    for name in ("config", "project", "stacks"):
        assert [leak for leak in leaks(ROOT / name) if not any(word in leak for word in _EXPECTED)] == []
    for file in ("cdk.json", "package.json", "app.py"):
        assert not list(find_secrets((ROOT / file).read_text()))


@pytest.mark.parametrize("what", PLANTED)
def test_each_form_of_secret_is_found(what, tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "template.json").write_text('{\n  "Value": "' + PLANTED[what] + '"\n}\n')
    (found,) = leaks(tmp_path)
    assert found == f"deep/template.json:2 {what}"


def test_hashes_and_names_are_not_secrets():
    for harmless in (
        "a" * 64,
        "0f" * 32,
        "arn:aws:iam::111122223333:role/lakeferry-dev-eu-west-1-tableflow",
        "ExportsOutputFnGetAttLakeBucket9CD7BBD2ArnF3D61E7E",
    ):
        assert not list(find_secrets(harmless))
