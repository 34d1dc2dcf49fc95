# Labels that share nodes get one root.

from __future__ import annotations

import random
import unittest

import package

if package.importlib.util.find_spec("pyspark"):
    import numpy as np
    from receipt_ledger_spark import components


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


@package.needs_spark
class ComponentTests(unittest.TestCase):
    def test_pairs_of_labels_with_a_node_give_roots(self) -> None:
        for number, edges in enumerate(graphs()):
            pairs = [(one, other) for one, node in edges for other, same in edges
                     if node == same and one < other]
            left = np.array([pair[0] for pair in pairs], np.int64)
            right = np.array([pair[1] for pair in pairs], np.int64)
            labels, roots = components.joined(left, right)
            with self.subTest(number):
                self.assertEqual(
                    dict(zip(labels.tolist(), roots.tolist())), followed(edges))


if __name__ == "__main__":
    unittest.main()
