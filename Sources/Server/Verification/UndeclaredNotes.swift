// Products that sell though their app does not declare them: whoever pays for one is answered as a fraud.
package import Projections

extension UndeclaredProduct {
  /// The command that declares it, for a shell; TYPE is what only a person knows.
  package var declaringCommand: String {
    "ledgerctl app edit \(shellQuoted(bundleID)) --product \(shellQuoted("\(productID)=TYPE"))"
  }
}

/// A word as a shell takes it.
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
