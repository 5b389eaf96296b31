"""How the job ends: a code for whoever starts it, and a reason for Glue, which keeps no code."""

from __future__ import annotations

import pytest

from glue_jobs import export
from tests.support import samples

WRONG = ["--export", "sales", "--bucket", "My.Bucket"]


def test_outside_of_glue_the_code_says_what_was_wrong(capsys):
    assert export.main(WRONG) == 2
    assert capsys.readouterr().err.startswith("export failed: ")


def test_in_glue_the_reason_is_what_ends_the_run(capsys):
    with pytest.raises(SystemExit) as ended:
        export.main([*WRONG, "--JOB_RUN_ID", "jr_1"])
    assert capsys.readouterr().err == f"export failed: {ended.value.code}\n"
    assert "--bucket 'My.Bucket' is not a bucket name" in ended.value.code


KNOWN = ["--as-of", "2026-11-16T06:00:00Z", "--database", "lake", "--bucket", "exports-bucket"]


def test_an_export_without_a_contract_ends_the_run_too(tmp_path, capsys):
    assert export.main(["--export", str(tmp_path / "none.toml"), *KNOWN]) == 2
    said = capsys.readouterr().err
    assert said.startswith("export failed: EXP-CONTRACT  ")
    assert "none.toml: 1 mistake" in said
    assert ".." not in said


def test_an_export_that_keeps_no_table_has_none_to_prepare(tmp_path, capsys):
    file = tmp_path / "things.toml"
    file.write_text(
        samples.HEAD.format(first="id", delivery="") + samples.COLUMN.format("id", "text", "Id", "")
    )
    assert export.main(["--export", str(file), *KNOWN, "--prepare-table", "true"]) == 2
    assert "--prepare-table: things keeps no table of its aggregates" in capsys.readouterr().err


def test_windows_that_the_contract_does_not_have_end_the_run_before_it_begins(tmp_path, capsys):
    file = tmp_path / "things.toml"
    file.write_text(
        samples.HEAD.format(first="id", delivery="") + samples.COLUMN.format("id", "text", "Id", "")
    )
    assert export.main(["--export", str(file), *KNOWN, "--windows", "2026-W40"]) == 2
    assert capsys.readouterr().err.startswith("export failed: EXP-WINDOWS  ")
