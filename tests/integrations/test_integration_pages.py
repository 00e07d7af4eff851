"""The code of the guides to other programs runs with those programs, and prints its comments."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from support.documents import ENVIRONMENTS, ROOT, pages

RUNS = [(page, name) for page in pages() for name in ENVIRONMENTS if page.environments & {name}]
LINES = ['{"user": {"id": 7}, "type": "buy"}', '{"user": {"id": 8}, "type": "view"}']
SETTINGS = {
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW_CONN_EVENTS_STORE": '{"conn_type": "generic", "extra": {"timeout": "2m"}}',
    "DAGSTER_DISABLE_TELEMETRY": "1",
    "DBT_SEND_ANONYMOUS_USAGE_STATS": "False",
    "DO_NOT_TRACK": "1",
    "RUNTIME__DLTHUB_TELEMETRY": "False",
}
PREPARATIONS = {"airflow": ["airflow", "db", "migrate"]}


def test_every_environment_has_a_page():
    assert {name for _, name in RUNS} == set(ENVIRONMENTS)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("page", "environment"), RUNS, ids=str)
def test_every_block_for_another_program_runs_in_order(page, environment, tmp_path: Path):
    binaries = ROOT / ".cache" / "integrations" / environment / "bin"
    assert (binaries / "delta-variant").exists(), "run tools/integrations.sh"
    landing = tmp_path / "bucket" / "landing"
    landing.mkdir(parents=True)
    (landing / "2026-11-27.ndjson").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    variables = {
        **os.environ,
        **SETTINGS,
        "AIRFLOW_HOME": str(tmp_path),
        "HOME": str(tmp_path),
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tests"))),
    }
    for command in (
        PREPARATIONS.get(environment),
        ["python", "-m", "support.documents", str(page), environment],
    ):
        if command is not None:
            done = subprocess.run(
                [binaries / command[0], *command[1:]],
                cwd=tmp_path,
                env=variables,
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, done.stdout + done.stderr
