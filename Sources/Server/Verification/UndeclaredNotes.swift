// Products that are sold but not declared by their app: their buyers get 402, as frauds do.
package import Projections

extension UndeclaredProduct {
  /// The command that declares it, for a shell; a person must replace TYPE.
  package var declaringCommand: String {
    "ledgerctl app edit \(shellQuoted(bundleID)) --product \(shellQuoted("\(productID)=TYPE"))"
  }
}

/// Quoting for a shell.
package func shellQuoted(_ word: String) -> String {
  let isPlain = word.utf8.allSatisfy { byte in
    (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20)
      || [UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "=")].contains(byte)
  }
  if isPlain, !word.isEmpty { return word }
  return "'"
    + word.split(separator: "'", omittingEmptySubsequences: false)
    .joined(separator: #"'\''"#) + "'"
}
