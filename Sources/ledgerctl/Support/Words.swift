// Small words of output.
import Bytes

/// `1 event`, `2 events`.
func counted(_ count: Int, _ noun: String) -> String {
  "\(count) \(noun)\(count == 1 ? "" : "s")"
}

extension Digest32 {
  /// In base64, as checkpoints write it.
  var base64: String { Base64.text(bytes) }
}
