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
    .json, .block, .deflate, .tail, .signedNote, .proof, .receipt, .signedObject, .signedPayload,
    .propertyList, .reply, .upload, .configuration, .handover, .declarations,
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
