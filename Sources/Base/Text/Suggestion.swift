// "did you mean …?", for commands, options and the keys of config.json.

/// The candidate nearest to `text`, if one is near enough to be a likely intention.
package func suggestion(for text: String, among candidates: [String]) -> String? {
  // 40 is longer than every name, and keeps the comparison cheap.
  let scalars = Array(text.lowercased().unicodeScalars.prefix(40))
  guard !scalars.isEmpty else { return nil }
  var best: (distance: Int, candidate: String)?
  for candidate in candidates {
    let distance = editDistance(scalars, Array(candidate.unicodeScalars))
    let isPrefix = scalars.count >= 3 && candidate.unicodeScalars.starts(with: scalars)
    guard isPrefix || distance <= max(1, min(scalars.count, candidate.count) / 3) else { continue }
    let rank = isPrefix ? min(distance, 1) : distance
    if rank < best?.distance ?? .max { best = (rank, candidate) }
  }
  return best?.candidate
}

/// `; did you mean X?`, or an empty text.
package func hint(for text: String, among candidates: [String], prefix: String = "") -> String {
  suggestion(for: text, among: candidates).map { "; did you mean \(prefix)\($0)?" } ?? ""
}

/// The number of insertions, deletions, replacements and swaps of neighbours that turn one text into the
/// other.
private func editDistance(_ from: [Unicode.Scalar], _ to: [Unicode.Scalar]) -> Int {
  var beforeLast: [Int] = []
  var last = Array(0...to.count)
  for row in from.indices {
    var current = [row + 1]
    for column in to.indices {
      let isSame = from[row] == to[column]
      var cost = min(last[column] + (isSame ? 0 : 1), last[column + 1] + 1, current[column] + 1)
      if row > 0, column > 0, from[row] == to[column - 1], from[row - 1] == to[column] {
        cost = min(cost, beforeLast[column - 1] + 1)
      }
      current.append(cost)
    }
    (beforeLast, last) = (last, current)
  }
  return last[to.count]
}
