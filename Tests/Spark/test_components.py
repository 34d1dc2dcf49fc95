# Labels that share nodes get one root: joined on the driver, and by rounds of stars on Spark.

from __future__ import annotations

import pathlib
import random
import tempfile
import unittest

import package

if package.importlib.util.find_spec("pyarrow"):
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    from receipt_ledger_spark import components

HAS_SPARK = package.importlib.util.find_spec("pyspark") is not None


def followed(edges: list[tuple[int, int]]) -> dict[int, int]:
    """The roots, found by following links one by one."""
    parent = {label: label for label, _ in edges}

    def root(label: int) -> int:
        while parent[label] != label:
            label = parent[label]
        return label

    first: dict[int, int] = {}
    for label, node in edges:
        one, other = sorted((root(first.setdefault(node, label)), root(label)))
        parent[other] = one
    return {label: root(label) for label in parent if root(label) != label}


def graphs() -> list[list[tuple[int, int]]]:
    generator = random.Random(7)
    found = []
    for size, factor in ((1, 1), (6, 1), (60, 1), (60, 2), (400, 1)):
        labels = [generator.randrange(-(2**63), 2**63) for _ in range(size)]
        found.append([(generator.choice(labels), generator.randrange(size))
                      for _ in range(size * factor)])
    # A path, where each label shares a node with the next one only.
    labels = [generator.randrange(-(2**63), 2**63) for _ in range(40)]
    found.append([(label, at + step) for at, label in enumerate(labels) for step in (0, 1)])
    return found


@package.needs_arrow
class ComponentTests(unittest.TestCase):
    def test_joined_on_the_driver(self) -> None:
        for number, edges in enumerate(graphs()):
            pairs = [(one, other) for one, node in edges for other, same in edges
                     if node == same and one < other]
            left = np.array([pair[0] for pair in pairs], np.int64)
            right = np.array([pair[1] for pair in pairs], np.int64)
            labels, roots = components.joined(left, right)
            with self.subTest(number):
                self.assertEqual(
                    dict(zip(labels.tolist(), roots.tolist())), followed(edges))

    @unittest.skipUnless(HAS_SPARK, "PySpark is not installed")
    def test_both_ways_give_the_same(self) -> None:
        from receipt_ledger_spark.session import Session

        with tempfile.TemporaryDirectory() as folder, Session(
            "local[2]", 2, 1024, None, ()
        ) as session:
            for number, edges in enumerate(graphs()[2:]):
                path = pathlib.Path(folder) / f"{number}.parquet"
                labels, nodes = zip(*edges)
                pq.write_table(pa.table({
                    "component": pa.array(labels, pa.int64()),
                    "node": pa.array(nodes, pa.int64())}), path)
                for limit in (0, 1_000_000):
                    scratch = pathlib.Path(folder) / f"{number}-{limit}"
                    scratch.mkdir()
                    found, count = components.roots(
                        session.spark, [str(path)], str(scratch), limit)
                    rows = pq.read_table(found)
                    wanted = followed(edges)
                    with self.subTest(number=number, limit=limit):
                        self.assertEqual(count, len(wanted))
                        self.assertEqual(
                            dict(zip(rows.column("component").to_pylist(),
                                     rows.column("root").to_pylist())), wanted)


if __name__ == "__main__":
    unittest.main()
