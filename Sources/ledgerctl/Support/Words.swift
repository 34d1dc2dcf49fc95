// Formatting of counts, sizes and digests.
import Base

/// `1 event`, `2 events`.
func counted(_ count: Int, _ noun: String) -> String {
  "\(count) \(noun)\(count == 1 ? "" : "s")"
}

/// `17 B`, `1.5 MiB`, rounded down.
func sizeText(_ byteCount: Int) -> String {
  let names = ["B", "KiB", "MiB", "GiB", "TiB"]
  var (whole, rest, index) = (byteCount, 0, 0)
  while whole >= 1024, index + 1 < names.count {
    (rest, whole, index) = (whole % 1024, whole / 1024, index + 1)
  }
  return index == 0 ? "\(whole) B" : "\(whole).\(rest * 10 / 1024) \(names[index])"
}

extension SHA256Digest {
  /// In base64, as checkpoints write it.
  var base64: String { Base64.text(bytes) }
}
