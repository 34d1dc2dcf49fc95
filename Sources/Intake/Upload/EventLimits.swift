// How large what goes into one event may be.

/// The bounds of what intake puts into one event.
package enum EventLimits {
  /// The largest data of an event: an event's line, of 16 MiB at most, has other members too.
  package static let dataBytes = (16 << 20) - 1024
  /// The largest reply: a verification has other members too.
  package static let replyBytes = dataBytes - 1024
  /// The longest host with its port: 253 bytes of a name and six more.
  package static let hostBytes = 259
  /// The longest name of an environment that is taken for one.
  package static let environmentBytes = 64
}
