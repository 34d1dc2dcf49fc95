// Signed notes, checkpoints and the written forms of keys.
@testable import Base
@testable import Ledger

extension FuzzTarget {
  static let signedNote = FuzzTarget(
    name: "signed-note", inputByteCountMax: 2048,
    words: [
      "\n\n\u{2014} ", "\u{2014} ", " ", "\n", "+", "PRIVATE+KEY+", "receipts.example/fuzz", "AAAA",
      "\u{a0}", "\u{301}", "0\n", "999999999999999999\n",
    ],
    seeds: {
      let tree = SampleTree.shared
      let key = tree.key
      let notes = SampleTree.sizes.compactMap { tree.checkpoints[$0] }
      let several = (tree.checkpoints[3] ?? []) + Array("\u{2014} other.example AAAAAAAA\n".utf8)
      return notes + [several] + [
        Array("\(key.verifierKey)".utf8), Array(key.fileText.utf8),
        Array("a text\nof two lines\n\n\n\u{2014} a AAAAAAA=\n".utf8), Array("\n\n\n".utf8),
      ]
    },
    check: { input in
      let bytes = Array(input)
      NoteCheck.note(bytes)
      NoteCheck.keys(bytes)
    })
}

private enum NoteCheck {
  static func note(_ bytes: [UInt8]) {
    let tree = SampleTree.shared
    do {
      let note = try SignedNote(bytes)
      require(note.bytes == bytes, "a note is written as it was read")
      require(note.signatures.count <= SignedNote.signatureCountMax, "a most of signatures")
      if (try? note.signers(among: [tree.key.verifierKey])) != nil {
        let signed = tree.checkpoints.values.compactMap { try? SignedNote($0).text }
        require(signed.contains(note.text), "nobody signs but who has the key")
      }
    } catch { require(!"\(error)".isEmpty, "refusals have causes") }
    guard let checkpoint = try? Checkpoint(unverified: bytes) else { return }
    let text = Checkpoint.text(
      origin: checkpoint.origin, size: checkpoint.size, root: checkpoint.root)
    require(bytes.starts(with: Array(text.utf8)), "a checkpoint's text has one form")
    require((try? SignedNote(bytes)) != nil, "a checkpoint is a note")
    if let verified = try? Checkpoint(bytes, keys: [tree.key.verifierKey]) {
      require(verified == checkpoint, "verified or not, it says the same")
      require(verified.root == tree.frontier(at: verified.size).root, "a signed head is a real one")
    }
  }

  static func keys(_ bytes: [UInt8]) {
    guard let text = String(validating: bytes, as: UTF8.self) else { return }
    if let key = try? VerifierKey(text) {
      require(Array("\(key)".utf8) == bytes, "a verifier key has one form")
    }
    if let key = SigningKey(fileText: text) {
      require(Array(key.fileText.utf8) == bytes, "a signing key has one form")
      require(!"\(key.verifierKey)".contains("PRIVATE"), "a public key is public")
    }
  }
}
