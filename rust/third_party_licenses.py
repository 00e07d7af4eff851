"""Write LICENSES-THIRD-PARTY.txt: the licenses and notices of the crates that the native library contains.

`python rust/third_party_licenses.py` writes the file, and with `--check` fails if it is not up to date.
`cargo metadata` names the crates. Procedural macros and build scripts run during the build, so that wheels do
not contain them.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

RUST = Path(__file__).resolve().parent
OUTPUT = RUST.parent / "LICENSES-THIRD-PARTY.txt"
ROOT_CRATE = "delta-variant-native"

# The targets of wheels.
TARGETS = (
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-musl",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc",
)

# Most preferred first: where a crate offers a choice, the first of these applies. The text of the Apache
# license is in LICENSE, which every wheel contains.
ACCEPTED = ("Apache-2.0", "BSD-3-Clause", "BSD-2-Clause", "MIT", "Zlib", "Unicode-3.0", "CC0-1.0")

LICENSE_FILE = re.compile(r"(?:licen[cs]e|copying|unlicense)", re.IGNORECASE)
NOTICE_FILE = re.compile(r"notice", re.IGNORECASE)
# In the name of a file, these select one of several licenses.
QUALIFIER = re.compile(r"apache|mit|bsd|zlib|unicode|unlicense|cc0", re.IGNORECASE)
APACHE_TEXT = re.compile(r"\s*Apache License\s+Version 2\.0")

Package = Mapping[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail if the file is not up to date")
    text = render(linked_packages())
    if not parser.parse_args().check:
        OUTPUT.write_text(text, encoding="utf-8")
    elif not OUTPUT.is_file() or OUTPUT.read_text(encoding="utf-8") != text:
        sys.exit(f"{OUTPUT.name} is not up to date: run python rust/third_party_licenses.py")


def linked_packages() -> list[Package]:
    """Return the crates that any wheel contains, sorted by name and version."""
    found = {each["id"]: each for target in TARGETS for each in _linked_on(target)}
    return sorted(found.values(), key=lambda each: (each["name"], each["version"]))


def _linked_on(target: str) -> Iterator[Package]:
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
    manifest = ["--manifest-path", str(RUST / "Cargo.toml")]
    metadata = json.loads(subprocess.run([*command, *manifest], stdout=subprocess.PIPE, check=True).stdout)
    packages = {each["id"]: each for each in metadata["packages"]}
    dependencies = {node["id"]: _dependencies(node) for node in metadata["resolve"]["nodes"]}
    [root] = (key for key, each in packages.items() if each["name"] == ROOT_CRATE)
    seen, queue = {root}, [root]
    while queue:
        linked = {key for key in dependencies[queue.pop()] if not _is_procedural_macro(packages[key])}
        queue.extend(linked - seen)
        seen |= linked
    return (packages[key] for key in seen - {root})


def _dependencies(node: Mapping[str, Any]) -> list[str]:
    """Return the ids of normal dependencies, those that are neither for builds nor for tests."""
    return [each["pkg"] for each in node["deps"] if any(kind["kind"] is None for kind in each["dep_kinds"])]


def _is_procedural_macro(package: Package) -> bool:
    return any("proc-macro" in target["kind"] for target in package["targets"])


def elect(expression: str) -> list[str]:
    """Return the licenses that apply: of each choice in an SPDX expression the most preferred.

    Raises ValueError if a part of the expression offers no accepted license.
    """
    elected = []
    for clause in expression.replace("/", " OR ").split(" AND "):
        choices = {choice.strip(" ()") for choice in clause.split(" OR ")}
        accepted = [each for each in ACCEPTED if each in choices]
        if not accepted:
            raise ValueError(f"cannot accept the license {expression!r}: extend ACCEPTED after a review")
        elected.append(accepted[0])
    return elected


def texts(package: Package, licenses: list[str]) -> Iterator[str]:
    """Yield the notices of a crate, and the texts of its licenses other than the Apache license."""
    words = [each.partition("-")[0].lower() for each in licenses if each != "Apache-2.0"]
    for file in sorted(Path(package["manifest_path"]).parent.iterdir()):
        is_license = bool(words and LICENSE_FILE.match(file.name))
        qualifiers = [each.lower() for each in QUALIFIER.findall(file.name)]
        if NOTICE_FILE.match(file.name) or (is_license and (not qualifiers or set(qualifiers) & set(words))):
            text = "\n".join(line.rstrip() for line in file.read_text(encoding="utf-8").strip().splitlines())
            if not APACHE_TEXT.match(text):
                yield text


def render(packages: list[Package]) -> str:
    """Return the file: a list of the crates, then each text once with the crates that it is of."""
    lines, crates_of, repositories = [], defaultdict(list), defaultdict(list)
    without_text = []
    for each in packages:
        licenses, label = elect(each["license"]), f"{each['name']} {each['version']}"
        lines.append(f"{label}: {' and '.join(licenses)}, {each['repository']}")
        found = list(texts(each, licenses))
        for text in found:
            crates_of[text].append(label)
            repositories[each["repository"]].append(text)
        if not found and licenses != ["Apache-2.0"]:
            without_text.append((each["repository"], label))
    # Some crates have the text of their license only in their repository, with a crate that has it.
    for repository, label in without_text:
        if repository not in repositories:
            raise ValueError(f"cannot find the text of the license of {label}")
        for text in dict.fromkeys(repositories[repository]):
            crates_of[text].append(label)
    rule = "=" * 100
    sections = [f"{rule}\n{', '.join(crates)}\n{rule}\n\n{text}\n" for text, crates in crates_of.items()]
    return "\n".join([HEADING, *lines, "", *sections])


HEADING = """\
The native library of delta_variant contains the Rust standard library (Apache-2.0,
https://github.com/rust-lang/rust) and these crates. Where a crate offers a choice of licenses, the one that
is listed applies. The text of the Apache License 2.0 is in the file LICENSE. The texts of the other licenses,
and the notices of the crates, follow the list.
"""

if __name__ == "__main__":
    main()
