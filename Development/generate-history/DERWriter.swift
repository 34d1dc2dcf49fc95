// Distinguished Encoding Rules, as much of them as receipts need.

struct DERWriter {
  enum Tag {
    static let boolean: UInt8 = 0x01
    static let integer: UInt8 = 0x02
    static let bitString: UInt8 = 0x03
    static let octetString: UInt8 = 0x04
    static let null: UInt8 = 0x05
    static let objectIdentifier: UInt8 = 0x06
    static let utf8String: UInt8 = 0x0C
    static let ia5String: UInt8 = 0x16
    static let utcTime: UInt8 = 0x17
    static let sequence: UInt8 = 0x30
    static let set: UInt8 = 0x31
    static func context(_ number: UInt8) -> UInt8 { 0xA0 | number }
  }

  private(set) var bytes: [UInt8] = []

  /// Writes `body`'s output as the content of one element.
  mutating func element(_ tag: UInt8, _ body: (inout DERWriter) -> Void) {
    let start = bytes.count
    body(&self)
    bytes.insert(contentsOf: Self.header(tag, count: bytes.count - start), at: start)
  }

  mutating func element(_ tag: UInt8, _ content: [UInt8]) {
    bytes.append(contentsOf: Self.header(tag, count: content.count))
    bytes.append(contentsOf: content)
  }

  mutating func string(_ tag: UInt8, _ text: String) { element(tag, Array(text.utf8)) }

  mutating func raw(_ content: [UInt8]) { bytes.append(contentsOf: content) }

  /// Writes a non-negative integer.
  mutating func integer(_ value: UInt64) {
    var content: [UInt8] = []
    var shift = 56
    while shift >= 0 {
      let byte = UInt8(truncatingIfNeeded: value >> UInt64(shift))
      if !content.isEmpty || byte != 0 || shift == 0 { content.append(byte) }
      shift -= 8
    }
    if content[0] >= 0x80 { content.insert(0, at: 0) }
    element(Tag.integer, content)
  }

  mutating func objectIdentifier(_ content: [UInt8]) { element(Tag.objectIdentifier, content) }

  mutating func algorithm(_ identifier: [UInt8]) {
    element(Tag.sequence) {
      $0.objectIdentifier(identifier)
      $0.element(Tag.null, [])
    }
  }

  static func header(_ tag: UInt8, count: Int) -> [UInt8] {
    if count < 0x80 { return [tag, UInt8(count)] }
    var length: [UInt8] = []
    var rest = count
    while rest > 0 {
      length.insert(UInt8(rest & 0xFF), at: 0)
      rest >>= 8
    }
    return [tag, 0x80 | UInt8(length.count)] + length
  }
}

/// Contents of object identifiers.
enum ObjectIdentifier {
  static let pkcs7Data: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x01]
  static let pkcs7SignedData: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x02]
  static let rsaEncryption: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01]
  static let sha1WithRSA: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x05]
  static let sha256WithRSA: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x0B]
  static let sha1: [UInt8] = [0x2B, 0x0E, 0x03, 0x02, 0x1A]
  static let sha256: [UInt8] = [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01]
  static let commonName: [UInt8] = [0x55, 0x04, 0x03]
  static let organization: [UInt8] = [0x55, 0x04, 0x0A]
  static let certificatePolicies: [UInt8] = [0x55, 0x1D, 0x20]
}
