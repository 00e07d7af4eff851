"""HDFS as the default file system: paths are rejected, and file:// URIs are tables of the disk."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from faults.buckets import free_port
from spark.cluster_runs import run_driver
from support import processes

JARS = Path(__file__).resolve().parents[2] / ".cache" / "hdfs"
CLUSTER = "org.apache.hadoop.mapreduce.MiniHadoopClusterManager"
STARTS_WITHIN = 120.0
CORE_SITE = """<configuration>
<property><name>fs.defaultFS</name><value>hdfs://127.0.0.1:{port}</value></property>
<property><name>fs.s3a.access.key</name><value>of core-site.xml</value></property>
</configuration>
"""


@pytest.mark.nightly
@pytest.mark.classic("core-site.xml and the configuration of the JVM")
@pytest.mark.timeout(600)
def test_a_session_on_hdfs_rejects_its_paths_and_uses_those_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    if not JARS.is_dir():
        pytest.skip("Hadoop's mini cluster is not installed: `make .cache/hdfs` does it, with Maven")
    settings, port = tmp_path / "settings", free_port()
    settings.mkdir()
    (settings / "core-site.xml").write_text(CORE_SITE.format(port=port))
    monkeypatch.setenv("HADOOP_CONF_DIR", str(settings))
    command = ["java", "-Xmx512m", "-cp", f"{JARS}/*", CLUSTER, "-nomr", "-format", "-nnport", str(port)]
    started = tmp_path / "started.xml"
    with processes.start([*command, "-writeConfig", str(started)], cwd=tmp_path, stderr=subprocess.DEVNULL):
        end = time.monotonic() + STARTS_WITHIN
        while not started.exists():
            assert time.monotonic() < end
            time.sleep(0.2)
        run_driver("hdfs_driver.py", tmp_path, 1, seconds_per_run=300)
