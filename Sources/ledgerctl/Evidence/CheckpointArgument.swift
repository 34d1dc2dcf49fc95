// Keys and checkpoints given on the command line.
import Base
import Ledger

/// The key in the examples: a valid one, because tests run the examples.
let exampleKey = "receipts.example/ledger1+ad516c7e+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4"

extension Option {
  static func verifierKeys(isRequired: Bool = false) -> Option {
    Option(
      "key", value: .init("VKEY"), isRepeatable: true, isRequired: isRequired,
      help: "a verifier key that you were given, as `ledgerctl key create` printed it")
  }
}

extension Invocation {
  /// The verifier keys given as options.
  func verifierKeys() throws(UsageError) -> [VerifierKey] {
    var keys: [VerifierKey] = []
    for text in values("key") {
      do throws(ProofError) { keys.append(try VerifierKey(text)) } catch {
        throw wrong("key", text, "is not a verifier key: \(error.cause)")
      }
    }
    return keys
  }
}

/// Reads a file that was given as a checkpoint or a proof. A file that lacks that form is evidence of nothing, so it is
/// a usage error; any other fault throws `ProofError`.
func readEvidence<Value>(
  _ path: String, byteCountMax: Int = 1 << 20, _ read: ([UInt8]) throws(ProofError) -> Value
) throws -> Value {
  let bytes = try readSmallFile(path, byteCountMax: byteCountMax)
  do throws(ProofError) { return try read(bytes) } catch {
    guard error.lacksForm else { throw error }
    throw UsageError(visible(path), "is not a valid \(error.object): \(error.cause)")
  }
}

/// Reads a checkpoint of a ledger, signed by one of these keys or, without keys, by one of the ledger's own.
func givenCheckpoint(
  _ path: String, _ directory: LedgerDirectory, keys: [VerifierKey]
) throws -> Checkpoint {
  let known = keys.isEmpty ? try KeyStore(directory).publicKeys() : keys
  let checkpoint: Checkpoint
  do {
    checkpoint = try readEvidence(path) { bytes throws(ProofError) in
      try Checkpoint(bytes, keys: known)
    }
  } catch let error as ProofError {
    throw Failure(.corrupted, operation: "read checkpoint", object: path, cause: error.description)
  }
  guard checkpoint.origin.hasSameBytes(as: directory.identity.origin) else {
    throw Failure(
      .corrupted, operation: "read checkpoint", object: path, cause: "it belongs to another ledger")
  }
  return checkpoint
}
