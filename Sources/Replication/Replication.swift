// The names of what replication writes, and its limits.

/// The layout of a copy; docs/replication.md.
package enum CopyLayout {
  package static let stepHeaderByteCountMax = 16 << 20
}
