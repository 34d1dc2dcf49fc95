// A large answer's way into the HTTP library: piece by piece, as the peer takes it.
import CMicroHTTPD
import Projections

/// Hands out one body. Only the library's thread uses it.
final class AnswerStream {
  /// The library holds one piece at a time. What is no larger is handed over at once.
  static let pieceByteCount = 32 << 10

  private var reader: AnswerBodyReader
  private let connection: Connection

  private init(_ body: AnswerBody, _ connection: Connection) {
    reader = AnswerBodyReader(body)
    self.connection = connection
  }

  /// The library's object for a body; nil where there is no memory for it.
  static func response(_ body: AnswerBody, _ connection: Connection) -> OpaquePointer? {
    if body.byteCount <= pieceByteCount {
      return body.bytes.withUnsafeBytes { cmhd_response($0.baseAddress, $0.count) }
    }
    let stream = Unmanaged.passRetained(AnswerStream(body, connection))
    let response = cmhd_response_in_pieces(
      UInt64(body.byteCount), pieceByteCount, readPiece, releaseStream, stream.toOpaque())
    if response == nil { stream.release() }
    return response
  }

  /// What the library and this hold of a body.
  static func heldByteCount(_ body: AnswerBody) -> Int {
    body.heldByteCount + min(body.byteCount, pieceByteCount)
  }

  /// The piece before has been sent.
  fileprivate func next(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
    connection.recordProgress()
    return reader.read(into: buffer)
  }
}

private func readPiece(
  context: UnsafeMutableRawPointer?, position: UInt64, buffer: UnsafeMutablePointer<CChar>?,
  size: Int
) -> Int {
  guard let context, let buffer else { return cmhdEndOfStream }
  let stream = Unmanaged<AnswerStream>.fromOpaque(context).takeUnretainedValue()
  let count = stream.next(UnsafeMutableRawBufferPointer(start: buffer, count: size))
  return count > 0 ? count : cmhdEndOfStream
}

/// Ends the connection: less has come than was announced. MHD_CONTENT_READER_END_WITH_ERROR is a cast, which Swift
/// does not import.
private let cmhdEndOfStream = -2

private func releaseStream(context: UnsafeMutableRawPointer?) {
  if let context { Unmanaged<AnswerStream>.fromOpaque(context).release() }
}
