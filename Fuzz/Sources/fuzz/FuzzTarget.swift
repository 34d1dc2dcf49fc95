// What a target is: a parser, the inputs to begin with, and what must hold for every input.

/// One thing that is fuzzed.
struct FuzzTarget: Sendable {
  /// As `--target=` names it.
  let name: String
  /// Longer inputs find nothing that shorter ones don't, and take more time.
  let inputByteCountMax: Int
  /// Texts that mean something to the parser, for libFuzzer to put into inputs.
  let words: [String]
  /// Inputs that the parser takes; the same on every run where nothing is signed.
  let seeds: @Sendable () throws -> [[UInt8]]
  /// Looks at one input; a broken property ends the program.
  let check: @Sendable (UnsafeRawBufferPointer) -> Void

  /// Every target, in the order of the sources.
  static let all: [FuzzTarget] = [
    .json, .block, .tail, .signedNote, .proof, .receipt, .signedObject, .signedPayload,
    .propertyList, .reply, .upload, .configuration, .handover, .declarations,
    .settlement,
  ]
}

/// Ends the program unless a property holds. Inputs are no secrets here: the sanitizer keeps them.
func require(
  _ holds: Bool, _ property: @autoclosure () -> String, file: StaticString = #file,
  line: UInt = #line
) {
  if !holds { fatalError("broken property: \(property())", file: file, line: line) }
}

/// Inputs in more than one form begin with a byte that selects it; empty inputs have none.
func split(_ input: UnsafeRawBufferPointer) -> (form: UInt8, rest: UnsafeRawBufferPointer)? {
  guard let form = input.first else { return nil }
  return (form, UnsafeRawBufferPointer(rebasing: input.dropFirst()))
}

/// Numbers at and beyond the limits of integers and dates, with every form that a number may have.
enum BoundaryNumbers {
  private static let all = [
    "0", "-0", "-1", "0.5", "-0.5", "1e400", "-1E-400", "2147483648", "-2147483649", "4294967296",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
    "-9223372036854775808.5", "9223372036854775807.5", "18446744073709551616", "253402300799999.5",
    "253402300800000", "-62135596800000", "-62135596800000.5", "99999999999999", "100000000000000",
    String(repeating: "9", count: 60),
  ]

  private static let numberBytes = Array("0123456789+-.eE".utf8)

  /// A text once for each of them, in place of every number that follows a colon, in quotes or without.
  static func variants(of text: [UInt8]) -> [[UInt8]] {
    all.map { number in
      var variant: [UInt8] = []
      var place = 0
      while place < text.count {
        variant.append(text[place])
        place += 1
        guard variant.last == UInt8(ascii: ":") else { continue }
        let isQuoted = place < text.count && text[place] == UInt8(ascii: "\"")
        var end = place + (isQuoted ? 1 : 0)
        let first = end
        while end < text.count, numberBytes.contains(text[end]) { end += 1 }
        guard end > first, !isQuoted || end < text.count && text[end] == UInt8(ascii: "\"") else {
          continue
        }
        variant += text[place..<first] + Array(number.utf8)
        place = end
      }
      return variant
    }
  }
}
