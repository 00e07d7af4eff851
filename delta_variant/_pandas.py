"""Processes of this package's own, which do not need pandas."""

from __future__ import annotations

import sys


class _NoPandas:
    """A finder for which pandas is not installed."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=name)


def hide_pandas() -> None:
    """Keep all code of this process from importing pandas.

    pyarrow imports it for the first Python object that it converts, and has no option to prevent this
    (arrow#34994). The import takes a quarter of the time of a short command, and 37 MB.
    """
    sys.meta_path.insert(0, _NoPandas)
