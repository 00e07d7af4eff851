"""Let a Python process of Spark import PySpark from a folder and not from its archive.

Spark puts `SPARK_HOME/python/lib/pyspark.zip` first on the path of each process. Python cannot keep what it
compiles from an archive, so each process compiles PySpark again, which takes half a second. The folder with
the same modules is `SPARK_HOME/python` in a distribution of Spark, and the parent of `SPARK_HOME` where pip
installed PySpark.

`register` adds the folder of this file to the path, and Python imports the module `sitecustomize` when it
starts.
"""

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from os.path import dirname, isfile, join


def without_archive(path: list[str]) -> list[str]:
    """Return a path that has the folder of PySpark's modules in place of the archive."""
    return [folder for entry in path for folder in _folders_of(entry, path)]


def _folders_of(entry: str, path: list[str]) -> list[str]:
    if not entry.endswith("pyspark.zip"):
        return [entry]
    home = dirname(dirname(dirname(entry)))
    if isfile(join(home, "python", "pyspark", "__init__.py")):
        return [join(home, "python")]
    # The parent also has other packages, and keeps its place.
    is_parent_known = isfile(join(home, "__init__.py")) and dirname(home) in path
    return [] if is_parent_known else [entry]


def run_next() -> None:
    """Import the module `sitecustomize` that Python would have found without this one, in its place."""
    if (spec := PathFinder.find_spec("sitecustomize", sys.path)) and spec.loader:
        module = sys.modules[spec.name] = module_from_spec(spec)
        spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    sys.path[:] = without_archive([entry for entry in sys.path if entry != dirname(__file__)])
    run_next()
