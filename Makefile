# Short names for commands. Each target installs what it needs, from the lock files, into this clone.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BOOTSTRAP = $(if $(PYTHON),$(PYTHON) -m lakeferry.local.bootstrap,$(error Python 3.11 was not found. Install it, or name it: make PYTHON=/path/to/python3.11))
BIN := .venv/bin
STAGE ?= dev
LAMBDA_PYTHON ?= 3.14
FUNCTION_TESTS := $(addprefix tests/unit/,test_core_*.py test_confluent_*.py test_resources_*.py test_rotation_*.py test_cleanup*.py test_watch.py test_notification_*.py test_announce*.py test_link_*.py test_mail_limits.py test_mails_over_ses.py test_news.py test_undelivered.py test_whole_*.py test_function_settings.py $(addsuffix .py,$(addprefix test_snowflake_,base_kinds client grant keypair login names sql tables trust user user_settings)))
STORAGE_TESTS := tests/faults $(addprefix tests/unit/test_,cleanup.py exporting.py multipart.py publish.py)
FUNCTION_TEST_PACKAGES := authlib boto3 hypothesis pyarrow pyspark pytest pytest-timeout sqlglot

# To install packages of the system; containers often have no sudo.
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)

# What `make lint` checks. It leaves out scripts that users add.
CODE := app.py config dev glue_jobs lakeferry lambdas simulators stacks tests

# Write byte code, even if a container's environment turns it off: the tests start Python hundreds of times.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-glue-6 test-glue-boto3 test-functions test-slow test-simulators rehearse deployments nightly nightly-campaigns nightly-cluster libreoffice lint checkov synth sbom audit docs bench setup lock clean

demo: setup
	@$(BIN)/lakeferry demo

test:
	@$(BOOTSTRAP) flink
	@$(BIN)/python -m pytest -n 2 --no-loadscope-reorder

# The tests of the job with the Spark of Glue 6.0. All other targets use that of Glue 5.1.
test-glue-6:
	@$(BOOTSTRAP) glue6
	@.venv-glue6/bin/python -m pytest -m 'not deep' tests/spark tests/faults

# The tests of reads and writes in S3 with the boto3 of Glue 5.1, which is older than that of requirements.txt. The embedded Glue uses
# the newer one, so the tests that compare the two are left out.
test-glue-boto3: setup
	@$(BIN)/uv pip install --quiet --target build/glue-boto3 --no-deps --constraint tests/infra/glue_5_1.txt boto3 botocore s3transfer
	@PYTHONPATH=build/glue-boto3 $(BIN)/python -m pytest -m 'not deep' $(STORAGE_TESTS) tests/infra/glue_boto3.py --ignore tests/faults/test_shipped_job.py

# The tests of the Lambda functions on another version of Python: make test-functions LAMBDA_PYTHON=3.14
test-functions: setup
	@$(BIN)/uv venv --quiet --clear --python $(LAMBDA_PYTHON) build/env-functions
	@$(BIN)/uv pip install --quiet --python build/env-functions/bin/python --require-hashes --requirement lambdas/requirements.txt
	@$(BIN)/uv pip install --quiet --python build/env-functions/bin/python --constraint requirements.txt $(FUNCTION_TEST_PACKAGES)
	@PYTHONPATH=. build/env-functions/bin/python -m pytest --confcutdir=tests/unit -p tests.support.common_plugin -p no:cacheprovider $(FUNCTION_TESTS)

# The tests of the simulators. Run them if you change simulators/ or the version of a package.
test-simulators:
	@$(BOOTSTRAP) flink
	@$(BIN)/python -m pytest -n 2 --no-loadscope-reorder -m 'simulators and not deep' simulators/tests

# What `make test` leaves out because it takes long: the rehearsal, tests that start their own Java, and cases that were not drawn.
test-slow:
	@$(BOOTSTRAP) flink
	@$(BIN)/python -m pytest -m 'slow and not deep'

rehearse:
	@$(BOOTSTRAP) flink
	@$(BIN)/lakeferry rehearse --example $(if $(KEEP),--keep)

# Rehearses a file of each kind: over tables that exist, on a cluster of another team, with tables in Confluent's storage, and for
# production. Then deploys the same kinds step by step, as users do, beside what other teams have, and two in the account of a
# security department.
deployments:
	@$(BOOTSTRAP) flink
	@$(BIN)/python -m pytest -m deep tests/cli/test_shipped_deployments.py tests/cli/test_existing_tables.py tests/cli/test_existing_cluster.py \
		tests/cli/test_managed_storage.py tests/cli/test_regulated_account.py tests/rehearsal/test_any_file.py

# Tests that take hours: the long campaigns, and all tests of the job on a local Spark cluster. Prints each test when it ends.
# CI runs both parts at the same time, on two machines.
nightly: nightly-campaigns nightly-cluster

# The demo runs first, because it writes the archive of Java classes. A killed job doesn't write it, and starts slowly without it.
# Four processes on two cores, because the fault tests wait more than they compute.
nightly-campaigns: demo
	@$(BOOTSTRAP) flink
	@$(BIN)/python -m pytest -vv -n 4 --no-loadscope-reorder --durations=40 -m 'deep or simulators'

# LibreOffice from the packages of Debian or Ubuntu: the rehearsal opens workbooks with it, and leaves the check out without it.
libreoffice:
	@$(SUDO) apt-get update --quiet
	@$(SUDO) apt-get install --quiet --yes --no-install-recommends libreoffice-calc

nightly-cluster: setup
	@$(BIN)/python -m pytest -vv --durations=20 -m 'not deep' tests/spark tests/faults --master 'local-cluster[2,1,1024]'

lint: setup
	@$(BIN)/ruff check $(CODE)
	@$(BIN)/ruff format --check $(CODE)
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m pytest -m 'not deep' tests/infra

# Checks the templates. checkov has an environment of its own, and needs neither the network nor an account.
checkov: setup
	@$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python build/env-checkov
	@$(BIN)/uv pip sync --quiet --python build/env-checkov/bin/python --require-hashes dev/requirements-checkov.txt
	@$(BIN)/python -m dev.checkov build/env-checkov/bin/checkov

synth: setup
	@$(BIN)/python -m lakeferry.deployment.app $(STAGE)
	@$(BIN)/python -m dev.sbom $(STAGE)

sbom: setup
	@$(BIN)/python -m dev.sbom $(STAGE)

audit: setup
	@$(BIN)/python -m dev.audit

docs: setup
	@$(BIN)/python -m dev.docs

bench: setup
	@$(BIN)/python -m dev.benchmarks

setup:
	@$(BOOTSTRAP)

lock:
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11.7 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header requirements.in --output-file requirements.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11.7 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header glue_jobs/requirements-glue6.in --output-file glue_jobs/requirements-glue6.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11.7 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header requirements-java.in --output-file requirements-java.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11.7 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header -c requirements.txt lambdas/requirements.in --output-file lambdas/requirements.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11.7 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header -c requirements.txt glue_jobs/requirements.in --output-file glue_jobs/requirements.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11.7 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header dev/requirements-checkov.in --output-file dev/requirements-checkov.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11.7 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header simulators/aws/requirements.in --output-file simulators/aws/requirements.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11.7 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header simulators/confluent/flink/worker/requirements.in --output-file simulators/confluent/flink/worker/requirements.txt

clean:
	rm -rf .venv .venv-aws .venv-flink .venv-glue6 .jars .lakeferry out build cdk.out node_modules *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
