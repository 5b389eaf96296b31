"""How the job ends: a code for whoever starts it, and a reason for Glue, which keeps no code."""

from __future__ import annotations

import pytest

from glue_jobs import export

WRONG = ["--export", "sales", "--bucket", "My.Bucket"]


def test_outside_of_glue_the_code_says_what_was_wrong(capsys):
    assert export.main(WRONG) == 2
    assert capsys.readouterr().err.startswith("export failed: ")


def test_in_glue_the_reason_is_what_ends_the_run(capsys):
    with pytest.raises(SystemExit) as ended:
        export.main([*WRONG, "--JOB_RUN_ID", "jr_1"])
    assert capsys.readouterr().err == f"export failed: {ended.value.code}\n"
    assert "--bucket 'My.Bucket' is not a bucket name" in ended.value.code


def test_an_export_without_a_contract_ends_the_run_too(tmp_path):
    known = ["--as-of", "2026-11-16T06:00:00Z", "--database", "lake", "--bucket", "exports-bucket"]
    assert export.main(["--export", str(tmp_path / "none.toml"), *known]) == 2
