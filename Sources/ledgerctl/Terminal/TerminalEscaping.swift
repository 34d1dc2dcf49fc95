// Escapes bytes of reports and events for a terminal, so that they cannot control it.

/// UTF-8 `bytes` in which control characters, except line feeds and tabs, and marks that change the reading direction
/// are written as JSON escapes. The program's own bold text stays. A file or a pipe gets the bytes unchanged.
package func harmlessBytes(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
  var result: [UInt8] = []
  result.reserveCapacity(bytes.count)
  var index = 0
  while index < bytes.count {
    let byte = bytes[index]
    if byte == 0x1B, let style = boldSequences.first(where: { starts(bytes, index, with: $0) }) {
      result.append(contentsOf: style)
      index += style.count
    } else if byte < 0x20, byte != 0x0A, byte != 0x09 {
      append(escapeOf: UInt16(byte), to: &result)
      index += 1
    } else if byte == 0x7F {
      append(escapeOf: 0x7F, to: &result)
      index += 1
    } else if byte == 0xC2, index + 1 < bytes.count, (0x80...0x9F).contains(bytes[index + 1]) {
      append(escapeOf: UInt16(bytes[index + 1]), to: &result)
      index += 2
    } else if byte == 0xE2, index + 2 < bytes.count, isDirectional(bytes, index) {
      append(
        escapeOf: 0x2000 | UInt16(bytes[index + 1] & 0x3F) << 6 | UInt16(bytes[index + 2] & 0x3F),
        to: &result)
      index += 3
    } else {
      result.append(byte)
      index += 1
    }
  }
  return result
}

private let boldSequences: [[UInt8]] = [Array("\u{1B}[1m".utf8), Array("\u{1B}[0m".utf8)]

private func starts(_ bytes: UnsafeRawBufferPointer, _ index: Int, with text: [UInt8]) -> Bool {
  bytes[index...].prefix(text.count).elementsEqual(text)
}

/// U+202A to U+202E, and U+2066 to U+2069.
private func isDirectional(_ bytes: UnsafeRawBufferPointer, _ index: Int) -> Bool {
  switch bytes[index + 1] {
  case 0x80: (0xAA...0xAE).contains(bytes[index + 2])
  case 0x81: (0xA6...0xA9).contains(bytes[index + 2])
  default: false
  }
}

private func append(escapeOf unit: UInt16, to result: inout [UInt8]) {
  let digits = Array("0123456789abcdef".utf8)
  result.append(contentsOf: "\\u".utf8)
  for shift in [12, 8, 4, 0] { result.append(digits[Int(unit >> UInt16(shift)) & 0xF]) }
}
