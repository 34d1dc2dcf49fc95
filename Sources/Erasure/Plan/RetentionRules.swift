// How long fields of uploads are kept.

/// How long fields are kept, in milliseconds since they were recorded; nil for ever.
package struct RetentionRules: Equatable, Sendable {
  package var ipAddressMs: Int64?
  package var identifierForVendorMs: Int64?
  /// Prices in the metadata are kept for ever: figures follow from them.
  package var metadataMs: Int64?

  package init() {}

  /// Whether anything is ever taken out.
  package var isEmpty: Bool {
    ipAddressMs == nil && identifierForVendorMs == nil && metadataMs == nil
  }
}

/// What one pass of retention takes: how many uploads lose fields, and when the first and the last were recorded.
package struct RetentionPass: Equatable, Sendable {
  package var eventCount: Int
  /// Epoch milliseconds.
  package var firstRecordedAtMs: Int64
  package var lastRecordedAtMs: Int64
  /// Whether it takes so much more than passes before it that the clock may be wrong. Then it waits for an operator.
  package var isUnusual: Bool

  package init(
    eventCount: Int, firstRecordedAtMs: Int64, lastRecordedAtMs: Int64, isUnusual: Bool
  ) {
    self.eventCount = eventCount
    (self.firstRecordedAtMs, self.lastRecordedAtMs) = (firstRecordedAtMs, lastRecordedAtMs)
    self.isUnusual = isUnusual
  }

  /// What every pass may take.
  package static let usualCountMax = 1_000
  /// How many passes say what is usual, and how far beyond their median a pass may go.
  static let comparedCount = 30
  static let medianFactor = 10

  /// - Parameter earlier: how many events each of the last passes took.
  package static func isUnusual(_ eventCount: Int, earlier: [Int]) -> Bool {
    if eventCount <= usualCountMax { return false }
    if earlier.isEmpty { return true }
    let median = earlier.sorted()[(earlier.count - 1) / 2]
    return eventCount / medianFactor > median
      || (eventCount / medianFactor == median && eventCount % medianFactor > 0)
  }
}
