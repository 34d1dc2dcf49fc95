// The options of `app add` and `app edit` that declare entitlements.
import Ledger

extension Option {
  static let entitlement = Option(
    "entitlement", value: .init("NAME=PATTERNS"), isRepeatable: true,
    help:
      "an entitlement and the products that give it, separated by commas: product ids, or beginnings of "
      + "product ids followed by `*`")
}

extension AppAddOptions {
  /// As many as a response can name.
  static let entitlementCountMax = 100
  static let patternCountMax = 100

  /// The entitlements of `--entitlement`, with distinct names.
  static func entitlements(_ invocation: Invocation) throws(UsageError) -> [Entitlement] {
    var entitlements: [Entitlement] = []
    for text in invocation.values("entitlement") {
      entitlements.append(try entitlement(text, invocation))
    }
    if let name = firstDuplicate(entitlements.map(\.name)) {
      throw invocation.wrong("entitlement", name, "given twice")
    }
    return entitlements
  }

  /// Whether a text can be an entitlement's name.
  static func isEntitlementName(_ text: String) -> Bool {
    (1...64).contains(text.utf8.count)
      && text.utf8.allSatisfy { byte in
        (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20)
          || [UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-")].contains(byte)
      }
  }

  private static func entitlement(
    _ text: String, _ invocation: Invocation
  ) throws(UsageError) -> Entitlement {
    guard let equals = text.firstIndex(of: "=") else {
      throw invocation.wrong("entitlement", text, "must be NAME=PATTERN[,PATTERN]")
    }
    let name = String(text[..<equals])
    guard isEntitlementName(name) else {
      throw invocation.wrong(
        "entitlement", text, "NAME must be 1 to 64 letters, digits, points, hyphens and underscores"
      )
    }
    let patterns = text[text.index(after: equals)...].split(
      separator: ",", omittingEmptySubsequences: false
    ).map(String.init)
    guard patterns.allSatisfy(isPattern) else {
      throw invocation.wrong(
        "entitlement", text, "PATTERN must be a product id, or the beginning of one followed by *")
    }
    guard patterns.count <= patternCountMax else {
      throw invocation.wrong("entitlement", name, "has more than \(patternCountMax) patterns")
    }
    if let pattern = firstDuplicate(patterns) {
      throw invocation.wrong("entitlement", "\(name)=\(pattern)", "given twice")
    }
    return Entitlement(name: name, patterns: patterns)
  }

  /// `*` stands at the end, if anywhere; alone it names every product.
  private static func isPattern(_ text: String) -> Bool {
    isIdentifier(text) && !text.dropLast().contains("*")
  }
}
