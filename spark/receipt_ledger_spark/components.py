# Which components of different parts belong together: those that share a node, and so on.
#
# A scan labels the components of its part. Here, labels that share nodes get one root: the least
# label of all that are connected. Only labels whose root is another label are listed. Few links are
# joined on the driver, many by rounds of large stars and small stars on Spark (Kiveris et al.,
# 2014); both give the same roots.

from __future__ import annotations

import os
from typing import Any, List, Sequence, Tuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .errors import Failure

# 16 bytes a link, and some ten times that while they are joined.
DRIVER_LINKS_MAX = 4_000_000
_ROUNDS_MAX = 60

ROOTS = "component long, root long"


def roots(
    spark: Any, edges: Sequence[str], scratch: str, driver_links_max: int = DRIVER_LINKS_MAX
) -> Tuple[str, int]:
    """Writes (component, root) of all labels that are not their own root. Returns the folder and
    the rows.
    """
    links = os.path.join(scratch, "links")
    _links(spark, edges).write.parquet(links)
    count = _rows(links)
    result = os.path.join(scratch, "roots")
    if count <= driver_links_max:
        table = pq.read_table(links, columns=["least", "component"])
        labels, found = joined(
            table.column("least").to_numpy(), table.column("component").to_numpy())
        os.mkdir(result)
        pq.write_table(
            pa.table({"component": labels, "root": found}), os.path.join(result, "roots.parquet"))
    else:
        _by_stars(spark, links, scratch, result)
    return result, _rows(result)


def _links(spark: Any, edges: Sequence[str]) -> Any:
    """Pairs of labels that share a node: the least of the node's labels and each other one."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    frame = spark.read.schema("component long, node long").parquet(*edges)
    # A window spills to disk where very many labels share a node.
    least = f.min("component").over(Window.partitionBy("node"))
    pairs = frame.select("component", least.alias("least"))
    return pairs.where("component <> least").distinct()


def joined(left: np.ndarray, right: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """The labels that the pairs connect with a lesser one, ascending, and their roots."""
    labels, places = np.unique(np.concatenate([left, right]), return_inverse=True)
    one, other = places[: len(left)], places[len(left) :]
    # Labels are sorted, so that the least place is the least label.
    parent = np.arange(len(labels))
    while len(one):
        low = np.minimum(parent[one], parent[other])
        high = np.maximum(parent[one], parent[other])
        # The parents of roots fall to the least neighbour; then every label moves to its root.
        np.minimum.at(parent, high, low)
        while True:
            above = parent[parent]
            if np.array_equal(above, parent):
                break
            parent = above
        open_links = parent[one] != parent[other]
        one, other = one[open_links], other[open_links]
    moved = parent != np.arange(len(labels))
    return labels[moved], labels[parent[moved]]


def _by_stars(spark: Any, links: str, scratch: str, result: str) -> None:
    """The same in rounds, each written down, until none changes anything."""
    from pyspark.sql import functions as f

    frame = spark.read.parquet(links).select(
        f.col("component").alias("high"), f.col("least").alias("low"))
    before = None
    for number in range(_ROUNDS_MAX):
        path = os.path.join(scratch, f"stars-{number}")
        _small_star(_large_star(frame)).write.parquet(path)
        frame = spark.read.parquet(path)
        state = _state(frame)
        if state == before:
            frame.selectExpr("high AS component", "low AS root").write.parquet(result)
            return
        before = state
    raise Failure("join components", "Spark", f"no end after {_ROUNDS_MAX} rounds")


def _large_star(frame: Any) -> Any:
    """Each label's larger neighbours become neighbours of its least neighbour, or of itself if
    that is less.
    """
    both = frame.select("high", "low").unionByName(frame.selectExpr("low AS high", "high AS low"))
    near = both.selectExpr("high AS label", "low AS neighbour").distinct()
    return _to_least(near, "neighbour > label")


def _small_star(frame: Any) -> Any:
    """Each label and its smaller neighbours become neighbours of the least of them."""
    near = frame.selectExpr(
        "greatest(high, low) AS label", "least(high, low) AS neighbour").distinct()
    itself = near.selectExpr("label", "label AS neighbour").distinct()
    return _to_least(near.unionByName(itself), "true")


def _to_least(near: Any, chosen: str) -> Any:
    from pyspark.sql import functions as f

    least = near.groupBy("label").agg(f.min("neighbour").alias("found"))
    least = least.selectExpr("label", "least(label, found) AS least")
    return (
        near.where(chosen).join(least, "label")
        .selectExpr("neighbour AS high", "least AS low").where("high <> low").distinct()
    )


def _state(frame: Any) -> Any:
    """What differs between two rounds as long as they change anything."""
    return tuple(frame.selectExpr(
        "count(*)", "sum(CAST(xxhash64(high, low) AS DECIMAL(38,0)))",
        "sum(CAST(low AS DECIMAL(38,0)))").collect()[0])


def _rows(folder: str) -> int:
    return sum(pq.read_metadata(os.path.join(folder, name)).num_rows
               for name in _parquet_files(folder))


def _parquet_files(folder: str) -> List[str]:
    return sorted(name for name in os.listdir(folder) if name.endswith(".parquet"))
