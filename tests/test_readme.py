"""The README's example does what its comment says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def test_the_example_of_the_readme_prints_what_it_says(tmp_path):
    example, *_ = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert example.rstrip().endswith(f"# {done.stdout.rstrip()}")


def test_the_commands_of_the_readme_run_on_its_table(tmp_path):
    readme = README.read_text(encoding="utf-8")
    example, *_ = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, check=True)
    commands = re.findall(r"^delta-variant .*$", readme, re.MULTILINE)
    script = "\n".join(f"{Path(sys.executable).parent}/{command}" for command in commands)
    done = subprocess.run(["sh", "-ec", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    # The second command reads the table that the first appended to.
    assert done.stdout.splitlines().count('{"user":7}') == 2
