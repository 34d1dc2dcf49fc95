// The exchange format: what is written is read; truncated or wrong streams are refused.
import Glibc
import LedgerRules
import TestSupport
import Testing

/// A stream in a file without a name.
private func withStream<Value>(
  _ write: (DescriptorOutput) throws -> Void, _ read: (DescriptorInput) throws -> Value
) throws -> Value {
  var name = Array("/tmp/exchange-XXXXXX".utf8CString)
  let descriptor = mkstemp(&name)
  defer { close(descriptor) }
  unlink(name)
  let output = DescriptorOutput(descriptor)
  try write(output)
  try output.flush()
  lseek(descriptor, 0, SEEK_SET)
  return try read(DescriptorInput(descriptor))
}

private func parts(of bytes: [UInt8]) throws -> (batches: [ExchangeBatch], end: [UInt8]) {
  try withStream({ try $0.write(bytes) }) { try parts(of: $0) }
}

private func parts(
  of input: DescriptorInput
) throws -> (batches: [ExchangeBatch], end: [UInt8]) {
  let reader = ExchangeReader(input)
  var batches: [ExchangeBatch] = []
  while true {
    switch try reader.next() {
    case .batch(let batch): batches.append(batch)
    case .end(let json): return (batches, json)
    }
  }
}

@Suite struct ExchangeTests {
  @Test func aSmallStreamHasExactlyTheseBytes() throws {
    let bytes = try withStream({ output in
      let writer = ExchangeWriter(output)
      let table = writer.table(7, [.integer, .bytes])
      try table.append(Int64(-2))
      try table.append("ab")
      try table.append(Int64(3))
      try table.append("")
      try writer.finish(Array("{}".utf8))
    }) { input in
      var bytes: [UInt8] = []
      while try !input.isAtEnd() { bytes.append(try input.integer(UInt8.self)) }
      return bytes
    }
    let expected: [UInt8] =
      [2, 0, 0, 0, 7, 0, 2, 0, 0, 0xFE, 255, 255, 255, 255, 255, 255, 255, 3, 0, 0, 0, 0, 0, 0, 0]
      + [1, 0, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0x61, 0x62]
      + [255, 255, 255, 255, 2, 0, 0, 0, 0x7B, 0x7D]
    expectEqual(bytes, expected)
  }

  @Test func manyRowsComeBackInOrderInSeveralBatches() throws {
    let count = 20_000
    let (batches, end) = try withStream({ output in
      let writer = ExchangeWriter(output)
      let first = writer.table(0, [.integer, .bytes])
      let second = writer.table(1, [.bytes])
      for row in 0..<count {
        try first.append(Int64(row))
        try first.append(String(repeating: "x", count: row % 7))
        if row % 3 == 0 { try second.append("\(row)") }
      }
      try writer.finish(Array("end".utf8))
    }) { try parts(of: $0) }
    expectEqual(end, Array("end".utf8))
    let first = batches.filter { $0.table == 0 }
    expectEqual(first.count, 3)
    var row = 0
    for batch in first {
      try batch.require(table: 0, [.integer, .bytes])
      for place in 0..<batch.rowCount {
        expectEqual(batch.integer(column: 0, row: place), Int64(row))
        expectEqual(batch.bytes(column: 1, row: place).count, row % 7)
        row += 1
      }
    }
    expectEqual(row, count)
    expectEqual(batches.filter { $0.table == 1 }.reduce(0) { $0 + $1.rowCount }, (count + 2) / 3)
  }

  @Test func aLargeCellEndsItsBatch() throws {
    let large = [UInt8](repeating: 0x41, count: 9 << 20)
    let (batches, _) = try withStream({ output in
      let writer = ExchangeWriter(output)
      let table = writer.table(0, [.bytes])
      for _ in 0..<3 { try table.append(large) }
      try writer.finish([])
    }) { try parts(of: $0) }
    expectEqual(batches.map(\.rowCount), [1, 1, 1])
    #expect(
      batches.allSatisfy { batch in
        let cell = batch.bytes(column: 0, row: 0)
        guard cell.count == large.count, let start = cell.baseAddress else { return false }
        return memcmp(start, large, large.count) == 0
      })
  }

  @Test func aCellLargerThanABatchIsRefused() throws {
    let large = [UInt8](repeating: 0x41, count: ExchangeFormat.batchByteCountMax + 1)
    #expect(throws: ExchangeError.cellTooLarge(byteCount: large.count)) {
      try withStream({ output in
        let writer = ExchangeWriter(output)
        try writer.table(0, [.bytes]).append(large)
      }) { _ in }
    }
  }

  @Test func aStreamCutAnywhereIsRefused() throws {
    let whole: [UInt8] =
      [1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0x61]
      + [255, 255, 255, 255, 2, 0, 0, 0, 0x7B, 0x7D]
    try expectEqual(parts(of: whole).end.count, 2)
    for count in 0..<whole.count {
      #expect(throws: ExchangeError.cutShort) { try parts(of: Array(whole[..<count])) }
    }
  }

  @Test(
    arguments: [
      ([0, 0, 0, 0], "a batch has 0 rows"),
      ([1, 0, 1, 0], "a batch has 65537 rows"),
      ([1, 0, 0, 0, 0, 0, 0, 0], "a batch has 0 columns"),
      ([1, 0, 0, 0, 0, 0, 1, 0, 2], "a column is of the unknown kind 2"),
      (
        [1, 0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0],
        "the offsets of a column do not increase from 0"
      ),
      (
        [2, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 5, 0, 0, 0, 4, 0, 0, 0],
        "the offsets of a column do not increase from 0"
      ),
      (
        [1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 255, 255, 255, 255],
        "a batch has more than 67108864 bytes"
      ),
      ([255, 255, 255, 255, 1, 0, 0, 4], "the end has more than 67108864 bytes"),
    ] as [([UInt8], String)])
  func aWrongStreamIsRefused(_ bytes: [UInt8], _ cause: String) {
    #expect(throws: ExchangeError.invalid(cause)) { try parts(of: bytes) }
  }

  @Test func aBatchOfAnotherFormIsRefused() throws {
    let bytes: [UInt8] = [1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]
    let batch = try parts(of: bytes + [255, 255, 255, 255, 0, 0, 0, 0]).batches[0]
    try batch.require(table: 0, [.bytes])
    #expect(throws: ExchangeError.self) { try batch.require(table: 1, [.bytes]) }
    #expect(throws: ExchangeError.self) { try batch.require(table: 0, [.integer]) }
  }
}
