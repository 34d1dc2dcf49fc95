// Comparing texts by their bytes.

extension StringProtocol {
  /// Whether two texts have the same UTF-8. `==` also calls equal what is canonically equivalent, such as an
  /// accented letter in one scalar and in two: names, origins and keys of others are bytes.
  package func hasSameBytes(as other: some StringProtocol) -> Bool {
    utf8.elementsEqual(other.utf8)
  }
}
