"""Types in the signatures of `delta_variant`, for annotations in your own code.

They change with the functions that use them. Classes whose objects users create, such as `FileOptions`, are
in `delta_variant` itself.
"""

from __future__ import annotations

from ._options import Compression, DuplicateKeys, Floats, Numeric, OnConflict
from .data_file.options import Compatibility, OnInvalid, ResidualRows, Shredding
from .data_file.writer import WrittenFile
from .execution import Engine
from .input.json_lines import Format, JsonLines, Progress, Source
from .log.file_set import FileSet
from .log.timestamps import Timestamp
from .operations.alter.columns import ColumnPath, Columns
from .operations.audit import AuditedFile, AuditSample
from .operations.audit.findings import RuleSummary, Severity
from .operations.describe.summary import PathSummary
from .operations.history import History
from .operations.legacy import FilePath, MigratedFile, NewShredding
from .operations.optimize.layout import FileGroup
from .operations.repair import FileRepair
from .protocol.actions import DomainMetadata, Metadata, Protocol, Txn
from .protocol.statistics import FileStatistics
from .protocol.table_configuration import TableConfiguration
from .protocol.types import StructType
from .storage.store import HasTableUri, Store, TableLocation
from .variant.objects import VariantForm
from .variant.shredding import Spec
from .variant.values import ArrowArray
from .write.preparation import Mode, SchemaMode

__all__ = [
    "ArrowArray",
    "AuditSample",
    "AuditedFile",
    "ColumnPath",
    "Columns",
    "Compatibility",
    "Compression",
    "DomainMetadata",
    "DuplicateKeys",
    "Engine",
    "FileGroup",
    "FilePath",
    "FileRepair",
    "FileSet",
    "FileStatistics",
    "Floats",
    "Format",
    "HasTableUri",
    "History",
    "JsonLines",
    "Metadata",
    "MigratedFile",
    "Mode",
    "NewShredding",
    "Numeric",
    "OnConflict",
    "OnInvalid",
    "PathSummary",
    "Progress",
    "Protocol",
    "ResidualRows",
    "RuleSummary",
    "SchemaMode",
    "Severity",
    "Shredding",
    "Source",
    "Spec",
    "Store",
    "StructType",
    "TableConfiguration",
    "TableLocation",
    "Timestamp",
    "Txn",
    "VariantForm",
    "WrittenFile",
]
