"""The process that asks Spark about contracts: what is kept of its answers, what needs it, and what happens
without Java.
"""

from __future__ import annotations

import shutil

import attrs
import pytest
from typer.testing import CliRunner

from config.deployments import deployment_file
from config.exports import contracts, topic_schema
from config.exports.analysis import analysable
from config.exports.check import NOT_JUDGED
from config.toml_model import BadFile
from lakeferry.__main__ import app
from lakeferry.local import judge as judges
from lakeferry.local.judge import NotReady, SparkJudge
from tests.support import shipped
from tests.support.lake import ROOT

SCHEMA = topic_schema.load(ROOT / "project" / "topics" / "stock_trades.avsc", "stock_trades")
CONTRACT = analysable(contracts.load("daily_trades"))


@pytest.fixture
def without_java(monkeypatch):
    """Set an environment in which no Java is found."""
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("JAVA_HOME", raising=False)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder with the answer about a contract."""
    folder = tmp_path_factory.mktemp("analyses")
    with SparkJudge(folder) as judge:
        assert judge(CONTRACT, SCHEMA).findings == []
    return folder


@pytest.mark.slow
@pytest.mark.usefixtures("without_java")
def test_a_kept_answer_needs_no_java(kept):
    with SparkJudge(kept) as judge:
        assert judge(CONTRACT, SCHEMA).findings == []


@pytest.mark.usefixtures("without_java")
def test_without_java_there_is_no_verdict(tmp_path):
    with SparkJudge(tmp_path) as judge, pytest.raises(NotReady, match=r"no Java 17: .* Run `make setup`"):
        judge(CONTRACT, SCHEMA)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.usefixtures("without_java")
@pytest.mark.parametrize("change", ["contract", "schema", "half an answer"])
def test_an_answer_about_something_else_is_not_taken(kept, tmp_path, change):
    folder = tmp_path / "analyses"
    shutil.copytree(kept, folder)
    contract = CONTRACT
    schema = SCHEMA
    if change == "contract":
        contract = attrs.evolve(CONTRACT, column=CONTRACT.column[:-1])
    elif change == "schema":
        schema = attrs.evolve(SCHEMA, type=attrs.evolve(SCHEMA.type, fields=SCHEMA.type.fields[:-1]))
    else:
        (answer,) = folder.iterdir()
        answer.write_text(answer.read_text()[:-10])
    with SparkJudge(folder) as judge, pytest.raises(NotReady):
        judge(contract, schema)


@pytest.mark.slow
def test_a_folder_that_can_not_be_written_costs_only_time(tmp_path):
    taken = tmp_path / "taken"
    taken.write_text("")
    with SparkJudge(taken) as judge:
        assert judge(CONTRACT, SCHEMA).findings == []


@pytest.mark.usefixtures("without_java")
def test_a_command_without_java_says_what_to_do(tmp_path, monkeypatch):
    text = (ROOT / "project" / "exports" / "daily_trades.toml").read_text()
    (tmp_path / "mine.toml").write_text(
        f'{text}\n[[filter]]\nwhere = "quantity > 7654321"\nreason = "no answer is kept"\n'
    )
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(app, ["export", "check", "mine.toml"])
    assert (answer.exit_code, "NOT-SET-UP" in answer.stderr, "make setup" in answer.stderr) == (3, True, True)
    assert judges.KEPT.parent.name == ".lakeferry"


@pytest.mark.slow
def test_a_deployment_with_an_expression_that_spark_refuses_is_refused(tmp_path):
    for folder in ("deployments", "exports", "flink", "topics"):
        shutil.copytree(
            ROOT / "project" / folder, tmp_path / folder, ignore=shutil.ignore_patterns("*.py", "__pycache__")
        )
    shipped.restore(tmp_path)
    contract = tmp_path / "exports" / "daily_trades.toml"
    contract.write_text(
        f'{contract.read_text()}\n[[filter]]\nwhere = "quantity::int > 1"\nreason = "the case at hand"\n'
    )
    file = tmp_path / "deployments" / "dev.toml"
    with SparkJudge(tmp_path / "analyses") as judge, pytest.raises(BadFile) as refused:
        deployment_file.load(file, tmp_path, judge=judge)
    (problem,) = refused.value.problems
    assert "not a Spark SQL expression (Syntax error at or near ':'" in problem.message
    assert deployment_file.load(file, tmp_path, judge=NOT_JUDGED).deployment.identity.stage == "dev"
