#!/bin/sh
# Installs the packages of docs/guides/ that the tests do not have, in an environment for each group below
# .cache/integrations, 1.5 GB. `pytest -m nightly tests/integrations` then runs the code of those pages.
set -eu
cd "$(dirname "$0")/.."
make build
[ -x .cache/uv/bin/uv ] || .venv/bin/pip install --quiet --target .cache/uv uv==0.13.8

install() {
  folder=.cache/integrations/$1
  shift
  [ -e "$folder/bin/delta-variant" ] && return
  .cache/uv/bin/uv venv --quiet --clear --python .venv/bin/python "$folder"
  .cache/uv/bin/uv pip install --quiet --python "$folder" --requirements pyproject.toml "$@"
  # The package is that of the checkout, which the tests name by PYTHONPATH.
  { echo "#!$PWD/$folder/bin/python"; echo 'from delta_variant.cli import main'; echo 'main()'; } > "$folder/command"
  chmod +x "$folder/command"
  mv "$folder/command" "$folder/bin/delta-variant"
}
install airflow apache-airflow==3.3.2
install dagster dagster==1.13.28
# dbt-core 1.12 needs a parser that is not in the registry of packages.
install dbt dbt-core==1.11.16 dbt-duckdb==1.11.1
install dlt dlt==1.31.0
install frames daft==0.7.26 datafusion==55.0.0 'duckdb>=2.0,<3' ibis-framework==12.0.0 narwhals==2.28.0 'pandas>=2.2,<3' 'polars>=2,<3'
