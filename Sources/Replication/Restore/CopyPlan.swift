// Which files a copy consists of, and the objects that make up each file.
import Base
import Ledger

/// An object of a copy, or the frames of a step: a part of a file.
struct CopyPiece: Sendable, Equatable {
  enum Source: Sendable, Equatable {
    case object(key: String)
    case step(Int, CopiedFrames)
  }

  let source: Source
  let offsetBytes: Int
  /// Nil if the steps do not record it.
  let byteCount: Int?
  let sha256: SHA256Digest
  /// The positions that it holds; empty for a checkpoint.
  let range: Range<Position>

  var key: String {
    switch source {
    case .object(let key): key
    case .step(let number, _): CopyLayout.stepKey(number)
    }
  }
}

/// A file of a ledger, made of pieces.
struct CopyFile: Sendable, Equatable {
  enum Kind: Sendable, Equatable {
    case segment(isClosed: Bool)
    case tail
    case checkpoint
  }

  let kind: Kind
  /// The position in its name; a checkpoint's size.
  let first: Position
  var pieces: [CopyPiece]

  /// The name in its folder.
  var name: String {
    switch kind {
    case .segment: Format.segmentName(first)
    case .tail: Format.tailName(first)
    case .checkpoint: CheckpointStore.leafName(size: first)
    }
  }

  var folderName: String {
    kind == .checkpoint ? CheckpointStore.directoryName : Format.logDirectoryName
  }

  var end: Position { pieces.last?.range.upperBound ?? first }

  /// Nil if the steps do not record it.
  var byteCount: Int? {
    pieces.last.flatMap { last in last.byteCount.map { last.offsetBytes + $0 } }
  }

  /// Closed segments never change.
  var permissions: UInt32 {
    kind == .segment(isClosed: true) ? Format.sealedPermissions : Format.filePermissions
  }
}

/// The files of a log up to a position, by position, then its checkpoints.
struct CopyPlan: Sendable, Equatable {
  /// How many events the files hold; the last file may hold more, and is cut.
  let size: Int
  private(set) var files: [CopyFile] = []

  /// - Parameter size: how many events are wanted; at most the copy's.
  init(_ state: CopyState, size: Int) throws(CopyFault) {
    self.size = size
    for segment in state.segments where segment.first < size {
      add(
        .segment(isClosed: true), first: segment.first, .object(key: segment.key),
        byteCount: segment.byteCount, segment.sha256, segment.first..<segment.end)
    }
    for block in state.blocks where block.first < size {
      add(
        .segment(isClosed: false), first: block.segment, .object(key: block.key),
        byteCount: block.byteCount, block.sha256, block.first..<block.end)
    }
    var tail: Position?
    for entry in state.frames where entry.frames.first < size {
      let frames = entry.frames
      // Frames that continue a tail whose beginning is in blocks make a new tail.
      let continues = tail == frames.tail && files.last?.kind == .tail
      tail = frames.tail
      add(
        .tail, first: continues ? files.last?.first ?? frames.first : frames.first,
        .step(entry.step, frames), byteCount: frames.byteCount, frames.sha256,
        frames.first..<frames.end)
    }
    for checkpoint in state.checkpoints where checkpoint.size <= size {
      files.append(
        CopyFile(
          kind: .checkpoint, first: checkpoint.size,
          pieces: [
            CopyPiece(
              source: .object(key: checkpoint.key), offsetBytes: 0, byteCount: nil,
              sha256: checkpoint.sha256, range: checkpoint.size..<checkpoint.size)
          ]))
    }
    try checkOffsets()
  }

  private mutating func add(
    _ kind: CopyFile.Kind, first: Position, _ source: CopyPiece.Source, byteCount: Int,
    _ sha256: SHA256Digest, _ range: Range<Position>
  ) {
    let continues = files.last.map { $0.kind == kind && $0.first == first } ?? false
    let piece = CopyPiece(
      source: source, offsetBytes: continues ? files.last?.byteCount ?? 0 : 0,
      byteCount: byteCount, sha256: sha256, range: range)
    if continues {
      files[files.count - 1].pieces.append(piece)
    } else {
      files.append(CopyFile(kind: kind, first: first, pieces: [piece]))
    }
  }

  /// Rejects offsets that no file can have: the numbers come from a store.
  private func checkOffsets() throws(CopyFault) {
    for file in files {
      for piece in file.pieces {
        guard piece.offsetBytes < 1 << 50, piece.byteCount ?? 0 < 1 << 50 else {
          throw CopyFault(object: piece.key, cause: "its stated size is larger than a file can be")
        }
      }
    }
  }

  /// The files of the log.
  var logFiles: [CopyFile] { files.filter { $0.kind != .checkpoint } }
  var checkpointSizes: [Int] { files.filter { $0.kind == .checkpoint }.map(\.first) }
  /// The file that contains the end and must be cut.
  var cutFile: CopyFile? { logFiles.last.flatMap { $0.end > size ? $0 : nil } }
}
