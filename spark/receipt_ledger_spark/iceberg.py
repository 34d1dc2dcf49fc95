# Tables of an Iceberg catalog, replaced by those of an output: one table, one transaction.

from __future__ import annotations

import os
import warnings
from typing import Any, Callable, Dict, Iterator, List

from . import errors, manifest, output
from .errors import Failure
from .tables import Table

NAMESPACE = "receipt_ledger"
_CATALOG = "catalog.db"
_GROUP_BYTES = 128 << 20


def check() -> None:
    """Fails unless pyiceberg is installed."""
    try:
        import pyiceberg.catalog.sql  # noqa: F401
    except ImportError:
        raise errors.usage(
            "write Iceberg tables", "pyiceberg",
            "not installed: pip install 'pyiceberg[sql-sqlite]'") from None


def publish(folder: str, place: str, say: Callable[[str], None]) -> None:
    """Replaces the rows of each table in the catalog of a directory, which is made if it is not
    there.
    """
    content = manifest.read(folder)
    try:
        catalog = _catalog(place)
        for described in content["described"]:
            table = Table.of(described).shown()
            if table.kind not in content["tables"]:
                continue
            snapshot = _replace(catalog, table, _paths(folder, table), content)
            say(f"Iceberg table {NAMESPACE}.{table.kind}: snapshot {snapshot}")
    except Failure:
        raise
    except Exception as error:
        said = str(error).splitlines()
        raise Failure(
            "write Iceberg tables", place, f"{said[0][:300] if said else type(error).__name__}; "
            f"{folder} is complete, try again with the command iceberg") from None


def _catalog(place: str) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    folder = os.path.abspath(place)
    os.makedirs(folder, 0o700, exist_ok=True)
    catalog = SqlCatalog(
        NAMESPACE, uri=f"sqlite:///{folder}/{_CATALOG}", warehouse=f"file://{folder}")
    catalog.create_namespace_if_not_exists(NAMESPACE)
    return catalog


def _paths(folder: str, table: Table) -> List[str]:
    return [os.path.join(folder, name) for name in output.files_of(folder)
            if name.startswith(f"{table.kind}/")]


def _groups(paths: List[str], schema: Any) -> Iterator[Any]:
    """The rows of files, many at a time: each append makes files of its own."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    batches: List[Any] = []
    for path in paths:
        for batch in pq.ParquetFile(path).iter_batches(65_536, columns=schema.names):
            batches.append(batch)
            if sum(each.nbytes for each in batches) >= _GROUP_BYTES:
                yield pa.Table.from_batches(batches).cast(schema)
                batches = []
    if batches:
        yield pa.Table.from_batches(batches).cast(schema)


def _replace(catalog: Any, table: Table, paths: List[str], content: Dict[str, Any]) -> int:
    """One transaction: readers see the old rows or the new ones. Returns the snapshot's id."""
    from pyiceberg.expressions import AlwaysTrue

    name = f"{NAMESPACE}.{table.kind}"
    schema = table.schema()
    target = catalog.create_table_if_not_exists(name, schema=schema)
    if [column.name for column in target.schema().fields] != schema.names:
        with target.update_schema(allow_incompatible_changes=True) as change:
            for column in target.schema().fields:
                if column.name not in schema.names:
                    change.delete_column(column.name)
            change.union_by_name(schema)
    with target.transaction() as transaction:
        with warnings.catch_warnings():
            # A new table has no rows to delete.
            warnings.simplefilter("ignore")
            transaction.delete(AlwaysTrue())
        for rows in _groups(paths, schema):
            transaction.append(rows)
        transaction.set_properties({
            "receipt-ledger.note": manifest.NOTE,
            "receipt-ledger.heads": " ".join(
                f"{entry['name']}={entry['size']}:{entry['root']}"
                for entry in content["ledgers"]),
        })
    snapshot = catalog.load_table(name).current_snapshot()
    return 0 if snapshot is None else int(snapshot.snapshot_id)
