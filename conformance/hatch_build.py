"""Add the cases, the licenses, and the dependency on the library of the same version to the kit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

FILES = ("protocol_fixtures/cases", "LICENSE", "NOTICE")


class SameVersion(MetadataHookInterface):
    """Require the library in exactly the version of the kit, which imports its internal modules."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the dependencies of the project."""
        metadata["dependencies"] = [f"delta-variant=={metadata['version']}"]


class SharedFiles(BuildHookInterface):
    """Add the cases and the licenses to a wheel. An editable installation reads the cases of its clone."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files to those of the build."""
        if version != "editable":
            paths = [Path(self.root).parent / file for file in FILES]
            build_data["force_include"].update({str(p): f"delta_variant_conformance/{p.name}" for p in paths})
