// Bodies that are sent slowly, break off, or are larger than anyone keeps in memory.

/// A body that libmicrohttpd asks for piece by piece, on the connection's own thread.
final class StreamedBody: Sendable {
  let sizeBytes: Int64
  private let beginning: [UInt8]
  private let end: [UInt8]
  private let pace: AnswerPlan.Pace
  private let server: StandInServer
  private let resetCount: Int

  /// Pieces that a slow body comes in.
  private static let slowPieces: Int64 = 20
  /// What MHD_CONTENT_READER_END_WITH_ERROR stands for: the connection is cut.
  private static let cutResult = -2

  init(body: [UInt8], pace: AnswerPlan.Pace, server: StandInServer, resetCount: Int) {
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
    let endStart = sizeBytes - Int64(end.count)
    for offset in 0..<Int(count) {
      let place = position + Int64(offset)
      target[offset] =
        if place < Int64(beginning.count) {
          beginning[Int(place)]
        } else if place >= endStart {
          end[Int(place - endStart)]
        } else {
          UInt8(ascii: "a")
        }
    }
    return Int(count)
  }
}
