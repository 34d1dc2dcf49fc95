// Comparing texts by their bytes.

extension StringProtocol {
  /// Whether two texts have the same UTF-8 bytes. `==` also treats canonically equivalent texts as equal, such as an
  /// accented letter written as one scalar or as two. Names, origins and other people's keys must match byte for
  /// byte.
  package func hasSameBytes(as other: some StringProtocol) -> Bool {
    utf8.elementsEqual(other.utf8)
  }
}
