# Which components of different parts belong together: those that share a node, and so on.
#
# A scan labels the components of its part. Spark finds which labels share a node; the driver joins
# these and gives all that are connected one root, their least label. A link takes it some 160
# bytes.

from __future__ import annotations

from typing import Tuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f


def roots(spark: SparkSession, edges: DataFrame) -> DataFrame:
    """(component, root) of all labels that are not their own root, from (component, nodes)."""
    # A window spills to disk where very many labels share a node.
    least = f.min("component").over(Window.partitionBy("node"))
    nodes = edges.select("component", f.explode("nodes").alias("node"))
    pairs = nodes.select("component", least.alias("least")).where("component <> least")
    links = pairs.distinct().toArrow()
    labels, found = joined(links["least"].to_numpy(), links["component"].to_numpy())
    return spark.createDataFrame(
        pa.table({"component": labels, "root": found}), "component long, root long")


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
