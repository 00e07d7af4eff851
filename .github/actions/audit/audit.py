"""The step of action.yml: audit a table, write the page, and print an annotation for each violated rule."""

from __future__ import annotations

import json
import subprocess
import sys

LEVELS = {"error": "error", "warning": "warning", "info": "notice"}
FAILING = {"error": ["error"], "warning": ["error", "warning"], "never": []}


def main(path: str, fail_on: str, data: str, page: str) -> int:
    """Return the exit status: 1 for findings that fail the job, 2 for an error."""
    if fail_on not in FAILING or data not in ("true", "false"):
        print(f"expected fail-on error, warning or never, and data true or false, got {fail_on!r}, {data!r}")
        return 2
    options = ["--json", "--html", page, *(["--data"] if data == "true" else [])]
    done = subprocess.run(["delta-variant", "audit", *options, "--", path], stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):
        return done.returncode
    report = json.loads(done.stdout)
    for rule in report["summary"]:
        text = rule["example"]["sentence"]
        if rule["count"] > 1:
            text = f"{rule['count']} findings, such as: {text}"
        # Text of a table must not start a command of the runner.
        for character, escaped in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
            text = text.replace(character, escaped)
        print(f"::{LEVELS[rule['severity']]} title={rule['rule']}::{text}")
    print(f"{report['uri']}, version {report['version']}: {report['counts']}")
    return int(any(report["counts"][severity] for severity in FAILING[fail_on]))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
