// Tails: frames of event lines, with their checksums as they come or made right.
@testable import Base
@testable import Ledger

extension FuzzTarget {
  static let tail = FuzzTarget(
    name: "tail", inputByteCountMax: 3072,
    words: [
      "#", "\n#00000000 ", " 0 1 ", "\n", "{\"seq\":0,\"type\":\"", "\",\"v\":1,\"at\":\"",
      "2026-01-02T03:04:05.678Z", "\",\"digest\":\"", "\",\"salt\":\"", "\",\"data\":{", "}}\n",
      "999999999999999999", "33554432",
    ],
    seeds: {
      var seeds: [[UInt8]] = [[0], [1]]
      for (eventCount, together) in [(1, 1), (4, 1), (6, 3)] {
        let files = try SampleLedger.files(
          eventCount: eventCount, block: 1 << 20, segment: 1 << 20, together: together)
        let tail = files[SampleLedger.tailPath] ?? []
        for form in 0...2 { seeds.append([UInt8(form)] + tail) }
        // Torn, and damaged before its end.
        seeds.append([0] + tail.dropLast(20))
        seeds.append([0] + tail.enumerated().map { $0 == 30 ? $1 ^ 1 : $1 })
      }
      return seeds
    },
    check: { input in
      guard let (form, rest) = split(input) else { return }
      switch form % 3 {
      case 0: TailCheck.tail(Array(rest))
      case 1: TailCheck.tail(TailCheck.withChecksums(Array(rest)))
      default: TailCheck.tail(TailCheck.frame(Array(rest)))
      }
    })
}

private enum TailCheck {
  static func tail(_ content: [UInt8]) {
    content.withUnsafeBytes { frames($0) }
    LogCheck.run([SampleLedger.tailPath: content])
  }

  /// Every frame is written as it is read.
  private static func frames(_ bytes: UnsafeRawBufferPointer) {
    var rest = bytes
    while let header = FrameHeader(rest) {
      require(header.headerByteCount <= rest.count, "a header lies within its bytes")
      require(header.eventCount > 0 && header.first >= 0, "frames hold events")
      guard header.isWhole(in: rest) else { return }
      let frame = UnsafeRawBufferPointer(rebasing: rest[..<header.frameByteCount])
      let buffer = ByteBuffer()
      FrameHeader.append(
        first: header.first, eventCount: header.eventCount,
        events: UnsafeRawBufferPointer(rebasing: frame[header.headerByteCount...]), to: buffer)
      require(buffer.bytes.elementsEqual(frame), "a frame has one form")
      rest = UnsafeRawBufferPointer(rebasing: rest[header.frameByteCount...])
    }
  }

  /// The frames' checksums made right, one after the other.
  static func withChecksums(_ content: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    var rest = content[...]
    while true {
      let frame = rest.withUnsafeBytes { bytes -> (bytes: [UInt8], byteCount: Int)? in
        guard let header = FrameHeader(bytes), header.frameByteCount <= bytes.count
        else { return nil }
        let events = bytes[header.headerByteCount..<header.frameByteCount]
        let buffer = ByteBuffer()
        FrameHeader.append(
          first: header.first, eventCount: header.eventCount,
          events: UnsafeRawBufferPointer(rebasing: events), to: buffer)
        return (Array(buffer.bytes), header.frameByteCount)
      }
      guard let frame else { return result + rest }
      result += frame.bytes
      rest = rest.dropFirst(frame.byteCount)
    }
  }

  /// One frame around an input, with as many events as it has lines.
  static func frame(_ content: [UInt8]) -> [UInt8] {
    let events = Array(content.drop { $0 == 0x23 })
    let eventCount = events.count { $0 == 0x0A }
    guard eventCount > 0 else { return content }
    let buffer = ByteBuffer()
    events.withUnsafeBytes {
      FrameHeader.append(first: 0, eventCount: eventCount, events: $0, to: buffer)
    }
    return Array(buffer.bytes)
  }
}
