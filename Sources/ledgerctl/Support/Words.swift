// Small words of output.
import AppStore
import Ledger

/// `1 event`, `2 events`.
func counted(_ count: Int, _ noun: String) -> String {
  "\(count) \(noun)\(count == 1 ? "" : "s")"
}

extension Digest32 {
  /// In base64, as checkpoints write it.
  var base64: String { String(decoding: Base64.encode(bytes), as: UTF8.self) }
}
