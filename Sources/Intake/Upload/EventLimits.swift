// The size limits of one event's content.

/// The limits on what intake puts into one event.
package enum EventLimits {
  /// The largest data of an event: its line, at most 16 MiB, has other members too.
  package static let dataBytes = (16 << 20) - 1024
  /// The largest reply: a verification has other members too.
  package static let replyBytes = dataBytes - 1024
  /// The longest bundle id; the App Store accepts none that is longer.
  package static let bundleIDBytes = 255
  /// The longest text that is accepted as the name of an environment.
  package static let environmentBytes = 64
}
