// Writes DER, as much of it as receipts and certificates need: values in, whole elements out.

package enum DER {
  package enum Tag {
    package static let boolean: UInt8 = 0x01
    package static let integer: UInt8 = 0x02
    package static let bitString: UInt8 = 0x03
    package static let octetString: UInt8 = 0x04
    package static let objectIdentifier: UInt8 = 0x06
    package static let utf8String: UInt8 = 0x0C
    package static let ia5String: UInt8 = 0x16
    package static let utcTime: UInt8 = 0x17
    package static let sequence: UInt8 = 0x30
    package static let set: UInt8 = 0x31
    package static func context(_ number: UInt8) -> UInt8 { 0xA0 | number }
  }

  package static let null: [UInt8] = [0x05, 0x00]

  /// One element whose content is `parts`, one after another.
  package static func element(_ identifier: UInt8, _ parts: [UInt8]...) -> [UInt8] {
    element(identifier, joining: parts)
  }

  /// The same for parts in an array.
  package static func element(_ identifier: UInt8, joining parts: [[UInt8]]) -> [UInt8] {
    let count = parts.reduce(0) { $0 + $1.count }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + 6)
    bytes.append(identifier)
    appendLength(count, to: &bytes)
    for part in parts { bytes.append(contentsOf: part) }
    return bytes
  }

  /// The same element with an indefinite length, as BER allows for constructed ones.
  package static func indefinite(_ identifier: UInt8, _ parts: [UInt8]...) -> [UInt8] {
    [identifier, 0x80] + parts.flatMap { $0 } + [0, 0]
  }

  private static func appendLength(_ count: Int, to bytes: inout [UInt8]) {
    if count < 0x80 { return bytes.append(UInt8(count)) }
    let octetCount = (Int.bitWidth - count.leadingZeroBitCount + 7) / 8
    bytes.append(0x80 | UInt8(octetCount))
    for place in (0..<octetCount).reversed() {
      bytes.append(UInt8(truncatingIfNeeded: count >> (8 * place)))
    }
  }

  package static func sequence(_ parts: [UInt8]...) -> [UInt8] {
    element(Tag.sequence, joining: parts)
  }

  package static func set(_ parts: [UInt8]...) -> [UInt8] { element(Tag.set, joining: parts) }

  package static func octets(_ bytes: [UInt8]) -> [UInt8] { element(Tag.octetString, bytes) }

  package static func utf8(_ text: String) -> [UInt8] {
    element(Tag.utf8String, Array(text.utf8))
  }

  package static func ia5(_ text: String) -> [UInt8] { element(Tag.ia5String, Array(text.utf8)) }

  package static func integer(_ value: Int64) -> [UInt8] {
    var octets = (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * $0)) }
    while octets.count > 1,
      (octets[0] == 0 && octets[1] < 0x80) || (octets[0] == 0xFF && octets[1] >= 0x80)
    {
      octets.removeFirst()
    }
    return element(Tag.integer, octets)
  }

  /// An identifier in dotted form, of at least two arcs.
  package static func objectIdentifier(_ text: String) -> [UInt8] {
    let arcs = text.split(separator: ".").compactMap { Int($0) }
    var octets: [UInt8] = []
    for arc in [arcs[0] * 40 + arcs[1]] + arcs.dropFirst(2) {
      var group = [UInt8(arc & 0x7F)]
      var rest = arc >> 7
      while rest > 0 {
        group.insert(UInt8(rest & 0x7F) | 0x80, at: 0)
        rest >>= 7
      }
      octets += group
    }
    return element(Tag.objectIdentifier, octets)
  }

  /// An algorithm without parameters, by its dotted form.
  package static func algorithm(_ text: String) -> [UInt8] {
    sequence(objectIdentifier(text), null)
  }
}

/// Object identifiers in dotted form.
package enum ObjectIdentifier {
  package static let data = "1.2.840.113549.1.7.1"
  package static let signedData = "1.2.840.113549.1.7.2"
  package static let rsaEncryption = "1.2.840.113549.1.1.1"
  package static let ecdsaWithSHA256 = "1.2.840.10045.4.3.2"
  package static let commonName = "2.5.4.3"
  package static let organization = "2.5.4.10"
  package static let subjectKeyIdentifier = "2.5.29.14"
  package static let keyUsage = "2.5.29.15"
  package static let basicConstraints = "2.5.29.19"
  package static let authorityKeyIdentifier = "2.5.29.35"
  package static let certificatePolicies = "2.5.29.32"
  package static let comment = "2.16.840.1.113730.1.13"
}
