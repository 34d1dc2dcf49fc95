// Bodies that are sent slowly, break off, or are larger than anyone keeps in memory.

/// A body that libmicrohttpd asks for piece by piece, on the connection's own thread.
final class StreamedBody: Sendable {
  let sizeBytes: Int64
  private let beginning: [UInt8]
  private let end: [UInt8]
  private let pace: ResponsePlan.Pace
  private let server: StandInServer
  private let resetCount: Int

  /// Pieces that a slow body comes in.
  private static let slowPieces: Int64 = 20
  /// What MHD_CONTENT_READER_END_WITH_ERROR stands for: the connection is cut.
  private static let cutResult = -2

  init(body: [UInt8], pace: ResponsePlan.Pace, server: StandInServer, resetCount: Int) {
    beginning = body
    end = []
    sizeBytes = Int64(body.count)
    self.pace = pace
    self.server = server
    self.resetCount = resetCount
  }

  /// A JSON object that is mostly padding. `paddingBytes`: at least 64.
  init(paddingBytes: Int64, server: StandInServer) {
    beginning = Array("{\"status\":0,\"padding\":\"".utf8)
    end = Array("\"}".utf8)
    sizeBytes = paddingBytes
    pace = .atOnce
    self.server = server
    resetCount = 0
  }

  func read(from position: Int64, into target: UnsafeMutableRawBufferPointer) -> Int {
    var count = min(Int64(target.count), sizeBytes - position)
    switch pace {
    case .atOnce: break
    case .cut:
      let middle = sizeBytes / 2
      if position >= middle { return Self.cutResult }
      count = min(count, middle - position)
    case .slow(let ms):
      server.wait(ms: ms / Self.slowPieces, resetCount: resetCount)
      count = min(count, max(sizeBytes / Self.slowPieces, 1))
    }
    let piece = UnsafeMutableRawBufferPointer(rebasing: target[..<Int(count)])
    piece.initializeMemory(as: UInt8.self, repeating: UInt8(ascii: "a"))
    Self.copy(beginning, at: 0, into: piece, from: position)
    Self.copy(end, at: sizeBytes - Int64(end.count), into: piece, from: position)
    return Int(count)
  }

  /// Copies of a text that stands at `start` of the body what falls into the piece at `position`.
  private static func copy(
    _ text: [UInt8], at start: Int64, into piece: UnsafeMutableRawBufferPointer,
    from position: Int64
  ) {
    let first = max(start, position)
    let last = min(start + Int64(text.count), position + Int64(piece.count))
    guard first < last else { return }
    text.withUnsafeBytes {
      UnsafeMutableRawBufferPointer(rebasing: piece[Int(first - position)...]).copyMemory(
        from: UnsafeRawBufferPointer(rebasing: $0[Int(first - start)..<Int(last - start)]))
    }
  }
}
