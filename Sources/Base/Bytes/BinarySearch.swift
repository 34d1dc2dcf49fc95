// Binary search.

/// The first index in a range for which `isBefore` is false. `isBefore` must be true for all indexes before some
/// point and false for all after it.
@inlinable @inline(__always)
package func lowerBound(_ range: Range<Int>, _ isBefore: (Int) -> Bool) -> Int {
  var low = range.lowerBound
  var high = range.upperBound
  while low < high {
    let middle = low + (high - low) / 2
    if isBefore(middle) { low = middle + 1 } else { high = middle }
  }
  return low
}
