// Keys, signed notes, checkpoints and proof files: published vectors, and everything that is refused.
import Base
import Ledger
import TestSupport
import Testing

private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

private func refusal(_ body: () throws -> Void) -> String? {
  do {
    try body()
    return nil
  } catch { return "\(error)" }
}

@Suite("Signed notes")
struct SignedNoteTests {
  private static let key =
    "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
  private static let signature =
    "Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM="
  private static let note =
    "This is an example message.\n\n— example.com/foo \(signature)\n"

  @Test("The published note verifies, and is written again as it was")
  func published() throws {
    let note = try SignedNote(bytes(SignedNoteTests.note))
    let key = try VerifierKey(SignedNoteTests.key)
    expectEqual("\(key)", SignedNoteTests.key)
    try expectEqual(note.signers(among: [key]), [key])
    expectEqual(note.text, bytes("This is an example message.\n"))
    expectEqual(note.bytes, bytes(SignedNoteTests.note))
  }

  @Test("Any flipped bit of the published note is refused")
  func flipped() throws {
    let key = try VerifierKey(SignedNoteTests.key)
    let whole = bytes(SignedNoteTests.note)
    for place in whole.indices {
      for bit in 0..<8 {
        var changed = whole
        changed[place] ^= 1 << bit
        #expect(throws: ProofError.self, "byte \(place), bit \(bit)") {
          try SignedNote(changed).signers(among: [key])
        }
      }
    }
  }

  @Test("Sixteen signatures of unknown keys do not keep a known one from counting")
  func unknownKeys() throws {
    let key = try VerifierKey(SignedNoteTests.key)
    let other = Base64.text([UInt8](repeating: 7, count: 68))
    let lines = (0..<16).map { "— witness.example/\($0) \(other)\n" }.joined()
    let note =
      "This is an example message.\n\n\(lines)— example.com/foo \(SignedNoteTests.signature)\n"
    try expectEqual(SignedNote(bytes(note)).signers(among: [key]), [key])
    // The known name with an unknown id is another key too.
    let namesake = SignedNoteTests.note + "— example.com/foo \(other)\n"
    try expectEqual(SignedNote(bytes(namesake)).signers(among: [key]), [key])
  }

  @Test("A known key whose signature fails refuses the note, whatever else is good")
  func wrongSignature() throws {
    let key = try VerifierKey(SignedNoteTests.key)
    var wrong = try #require(try? Base64.decode(bytes(SignedNoteTests.signature)))
    wrong[40] ^= 1
    let note = SignedNoteTests.note + "— example.com/foo \(Base64.text(wrong))\n"
    expectEqual(
      refusal { try SignedNote(bytes(note)).signers(among: [key]) },
      "signed note: the signature of key 530d903a is wrong")
    let short = SignedNoteTests.note + "— example.com/foo \(Base64.text(Array(wrong[..<12])))\n"
    #expect(throws: ProofError.self) { try SignedNote(bytes(short)).signers(among: [key]) }
  }

  @Test("A note that no known key has signed is refused")
  func noKnownKey() throws {
    let note = try SignedNote(bytes(SignedNoteTests.note))
    expectEqual(
      refusal { try note.signers(among: []) }, "signed note: it is not signed by a known key")
  }

  @Test(
    "An invalid note is refused with the reason",
    arguments: [
      ("", "it does not end with a line feed"),
      ("text\n", "there is no empty line before the signatures"),
      ("text\n\n", "it has no signature"),
      ("text\n\n— example.com/foo \(signature)", "it does not end with a line feed"),
      ("te\txt\n\n— example.com/foo \(signature)\n", "it contains a control character"),
      ("text\r\n\n— example.com/foo \(signature)\n", "it contains a control character"),
      ("text\n— example.com/foo \(signature)\n", "there is no empty line before the signatures"),
      ("text\n\n- example.com/foo \(signature)\n", "a signature line is malformed"),
      ("text\n\n— example.com/foo  \(signature)\n", "a signature line is malformed"),
      ("text\n\n— example.com/foo \(signature) \n", "a signature line is malformed"),
      ("text\n\n— a+b \(signature)\n", "a signature line is malformed"),
      ("text\n\n— a\u{00A0}b \(signature)\n", "a signature line is malformed"),
      ("text\n\n—  \(signature)\n", "a signature line is malformed"),
      ("text\n\n— a Uw2Q\n", "a signature line is malformed"),
      ("text\n\n— a Uw2QOkn8s\n", "a signature line is malformed"),
      (
        "text\n\n" + String(repeating: "— a \(signature)\n", count: 101),
        "it has more than 100 signatures"
      ),
    ])
  func malformed(_ note: String, _ cause: String) {
    expectEqual(refusal { _ = try SignedNote(bytes(note)) }, "signed note: \(cause)")
  }

  @Test("Bytes that are not UTF-8, and a huge note, are refused")
  func notText() {
    #expect(throws: ProofError.self) { try SignedNote([0xFF, 0x0A, 0x0A, 0x0A]) }
    let huge = [UInt8](repeating: 0x61, count: SignedNote.byteCountMax) + bytes("\n\n")
    expectEqual(refusal { _ = try SignedNote(huge) }, "signed note: it is too large")
  }

  @Test(
    "An invalid verifier key is refused with the reason",
    arguments: [
      ("", "it is not name+id+key"),
      ("example.com/foo", "it is not name+id+key"),
      ("example.com/foo+530d903a", "it is not name+id+key"),
      ("example.com/foo+530d903a+Aek", "its key is not base64 of 33 bytes"),
      (
        "+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
        "its name is empty or holds white space"
      ),
      (
        "a b+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
        "its name is empty or holds white space"
      ),
      (
        "example.com/bar+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
        "its id does not match its name and key"
      ),
      (
        "example.com/foo+530D903A+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
        "its id does not match its name and key"
      ),
      (
        "example.com/foo+530d903a+AukyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
        "its algorithm is 2; this program knows 1, Ed25519"
      ),
    ])
  func wrongKeys(_ text: String, _ cause: String) {
    expectEqual(refusal { _ = try VerifierKey(text) }, "verifier key: \(cause)")
  }
}

@Suite("Checkpoints and proof files")
struct CheckpointFormatTests {
  static let vkey =
    "receipts.example/ledger1+ad516c7e+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4"
  static let note = """
    receipts.example/ledger1
    8
    XcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/RgQyg=

    — receipts.example/ledger1 rVFsfj983a6KcGc4HmbDxXQRjjMziTdK71Oz7VV+S7oUARzeJQCnWVLschqwX+nHOgPnMiTrIFbndWX5FUWpwelKIg0=

    """

  @Test("The published seed has the published key; the published checkpoint verifies")
  func published() throws {
    let seed = [UInt8](0...31)
    let signing = try #require(SigningKey(name: "receipts.example/ledger1", seed: seed))
    expectEqual("\(signing.verifierKey)", CheckpointFormatTests.vkey)
    let key = try VerifierKey(CheckpointFormatTests.vkey)
    let checkpoint = try Checkpoint(bytes(CheckpointFormatTests.note), keys: [key])
    expectEqual(checkpoint.origin, "receipts.example/ledger1")
    expectEqual(checkpoint.size, 8)
    expectEqual(
      checkpoint.root.hex, "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328")
    expectEqual(checkpoint.bytes, bytes(CheckpointFormatTests.note))
    #expect(SigningKey(name: "a", seed: Array(seed.dropLast())) == nil)
    #expect(SigningKey(name: "a b", seed: seed) == nil)
  }

  @Test(
    "A text that is not a checkpoint is refused",
    arguments: [
      "receipts.example/ledger1\n8\n", "receipts.example/ledger1\n",
      "receipts.example/ledger1\n08\nXcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/RgQyg=\n",
      "receipts.example/ledger1\n-1\nXcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/RgQyg=\n",
      "receipts.example/ledger1\n9999999999999999999\nXcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/RgQyg=\n",
      "receipts.example/ledger1\n8\nXcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/RgQyg\n",
      "receipts.example/ledger1\n8\nXcna\n",
      "\n8\nXcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/RgQyg=\n",
    ])
  func malformed(_ text: String) throws {
    let note = text + "\n— a \(Base64.text([UInt8](repeating: 1, count: 68)))\n"
    #expect(throws: ProofError.self) { try Checkpoint(unverified: bytes(note)) }
  }

  @Test("A checkpoint that a known key of another name has signed is refused")
  func foreignOrigin() throws {
    // The note of the other vector will not do, since its text is not a checkpoint: this one is made.
    let fixture = try LedgerFixture(origin: "receipts.example/ledger2")
    _ = try KeyStore(fixture.directory).create(isFurther: false)
    let directory = try LedgerDirectory.open(path: fixture.path)
    let signed = try CheckpointStore(directory).sign(try LogReader(directory))
    let text = String(decoding: signed.bytes, as: UTF8.self)
    let key = try VerifierKey(directory.identity.publicKeys[0])
    #expect(throws: Never.self) { try Checkpoint(signed.bytes, keys: [key]) }
    let renamed = text.replacing("receipts.example/ledger2\n", with: "receipts.example/ledger3\n")
    #expect(throws: ProofError.self) { try Checkpoint(bytes(renamed), keys: [key]) }
  }

  /// A proof in a ledger of this many events.
  private func proof(of index: Int, count: Int) throws -> (InclusionProof, [VerifierKey]) {
    let fixture = try LedgerFixture()
    try fixture.fill(count)
    let key = try KeyStore(fixture.directory).create(isFurther: false)
    let directory = try LedgerDirectory.open(path: fixture.path)
    let reader = try LogReader(directory)
    let checkpoint = try CheckpointStore(directory).sign(reader)
    let line = try reader.event(at: index)
    let record = line.withUnsafeBytes { EventLine($0)?.leafRecord }
    return (
      InclusionProof(
        leafRecord: try #require(record), index: index,
        hashes: try TreeProof.inclusion(of: index, in: count, reader),
        checkpoint: checkpoint.bytes), [key]
    )
  }

  @Test("An inclusion proof verifies offline; with any byte changed it is refused")
  func inclusionFile() throws {
    let (proof, keys) = try proof(of: 6, count: 11)
    let file = proof.bytes
    try expectEqual(InclusionProof(file), proof)
    try expectEqual(InclusionProof(file).verify(keys).size, 11)
    for place in file.indices {
      var changed = file
      changed[place] ^= 1
      #expect(throws: ProofError.self, "byte \(place)") {
        try InclusionProof(changed).verify(keys)
      }
    }
    for length in file.indices {
      #expect(throws: ProofError.self) { try InclusionProof(Array(file[..<length])).verify(keys) }
    }
    #expect(throws: ProofError.self) { try InclusionProof(file).verify([]) }
  }

  @Test("A leaf record under another index than its own is refused")
  func foreignIndex() throws {
    // Two events of one tree: the record of one cannot pass for the other's.
    let (six, keys) = try proof(of: 6, count: 11)
    let moved = InclusionProof(
      leafRecord: six.leafRecord, index: 5, hashes: six.hashes, checkpoint: six.checkpoint)
    #expect(throws: ProofError.self) { try moved.verify(keys) }
  }

  @Test("A consistency proof verifies offline; with any byte changed it is refused")
  func consistencyFile() throws {
    let fixture = try LedgerFixture()
    let key = try KeyStore(fixture.directory).create(isFurther: false)
    let directory = try LedgerDirectory.open(path: fixture.path)
    try fixture.fill(5)
    let old = try CheckpointStore(directory).sign(try LogReader(directory))
    try fixture.fill(8)
    let reader = try LogReader(directory)
    let new = try CheckpointStore(directory).sign(reader)
    let proof = ConsistencyProof(
      oldCheckpoint: old.bytes,
      hashes: try TreeProof.consistency(from: 5, to: 13, reader), newCheckpoint: new.bytes)
    let file = proof.bytes
    try expectEqual(ConsistencyProof(file), proof)
    let heads = try ConsistencyProof(file).verify([key])
    #expect(heads.old == old && heads.new == new)
    for place in file.indices {
      var changed = file
      changed[place] ^= 1
      #expect(throws: ProofError.self, "byte \(place)") {
        try ConsistencyProof(changed).verify([key])
      }
    }
    let swapped = ConsistencyProof(
      oldCheckpoint: new.bytes, hashes: proof.hashes, newCheckpoint: old.bytes)
    #expect(throws: ProofError.self) { try swapped.verify([key]) }
  }
}
