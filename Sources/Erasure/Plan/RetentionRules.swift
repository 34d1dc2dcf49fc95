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
