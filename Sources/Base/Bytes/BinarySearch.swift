// Binary search.

/// The first place of a range for which `isBefore` does not hold, in a range where it holds for
/// all places before some place and for none after.
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
