// The inputs of an import. All are opened, and checked where possible, before anything is appended.
package import Base
import Glibc
package import Ledger

/// One input: a file, compressed or not, standard input, or an archive.
package final class ImportInput {
  package let name: String
  /// Nil for an archive.
  private let file: FileSource?
  /// The lines of an archive, from its beginning each time.
  private var archive: (() throws(Failure) -> ArchiveLines)?
  private let isGzip: Bool
  /// The bytes read from a stream to detect gzip and files of other kinds.
  private var peeked: [UInt8]

  private static let gzipMagic: [UInt8] = [0x1F, 0x8B]

  /// Opens every path (`-` is standard input), then checks what can be checked in advance: no file is empty,
  /// and compressed files are intact.
  /// - Parameters:
  ///   - spoolFolder: where standard input and pipes are first copied to a private file, so they can be read
  ///     twice; nil to read them as they arrive.
  ///   - spoolBytesMax: the limit for all spooled inputs together: a stream may be endless.
  ///   - stop: checked while reading.
  package static func openAll(
    _ paths: [String], spoolFolder: Folder?, spoolBytesMax: Int = 4 << 30, stop: StopFlag
  ) throws(Failure) -> [ImportInput] {
    if paths.count(where: { $0 == "-" }) > 1 {
      throw Failure(
        operation: "read", object: "standard input", cause: "is given twice")
    }
    var files: [FileSource] = []
    for path in paths { files.append(try FileSource(path: path, stop: stop)) }
    for file in files where file.sizeBytes == 0 { throw empty(file.name) }
    var inputs: [ImportInput] = []
    var spoolBytesLeft = spoolBytesMax
    for file in files {
      if let spoolFolder, file.sizeBytes == nil {
        let spooled = try spool(
          file, in: spoolFolder, left: spoolBytesLeft, of: spoolBytesMax, stop: stop)
        spoolBytesLeft -= spooled.sizeBytes ?? 0
        inputs.append(try ImportInput(spooled))
      } else {
        inputs.append(try ImportInput(file))
      }
    }
    for input in inputs where input.sizeBytes != nil && input.isGzip { try input.checkWhole() }
    return inputs
  }

  private init(_ file: FileSource) throws(Failure) {
    self.file = file
    name = file.name
    // A regular file on standard input may be at any offset; a shell's redirection starts at the beginning.
    if file.sizeBytes != nil { try file.rewind() }
    peeked = []
    let piece = UnsafeMutableRawBufferPointer.allocate(
      byteCount: InputKind.byteCountMax, alignment: 1)
    defer { piece.deallocate() }
    // A stream's first bytes are looked at as they come.
    while peeked.count < Self.gzipMagic.count {
      let count = try file.read(into: piece)
      if count == 0 { break }
      peeked += piece[..<count]
    }
    if peeked.isEmpty { throw Self.empty(name) }
    if let cause = InputKind.lines.objection(toFile: peeked) {
      throw Failure(operation: "read", object: name, cause: cause)
    }
    isGzip = peeked.starts(with: Self.gzipMagic)
  }

  /// An archive. Its paths are checked now; its files are opened when they are read.
  package init(
    archive paths: [String], _ options: ArchiveOptions, stop: StopFlag
  ) throws(Failure) {
    _ = try ArchiveLines(paths, options, stop: stop)
    name = paths.first ?? ""
    (file, isGzip, peeked) = (nil, false, [])
    archive = { () throws(Failure) in try ArchiveLines(paths, options, stop: stop) }
  }

  private static func empty(_ name: String) -> Failure {
    Failure(operation: "read", object: name, cause: "is empty")
  }

  /// Size on disk; nil for a stream.
  package var sizeBytes: Int? { file?.sizeBytes }
  /// Bytes read in this pass.
  package var readBytes: Int { file?.readBytes ?? 0 }

  /// The input's lines from its beginning. A stream can be read only once.
  func lines() throws(Failure) -> any LineSource {
    if let archive { return try archive() }
    return LineReader(try content())
  }

  /// The input's content from its beginning. A stream can be read only once.
  package func content() throws(Failure) -> any ByteSource {
    guard let file else { preconditionFailure("an archive has lines, not content") }
    var source: any ByteSource = file
    if sizeBytes != nil {
      try file.rewind()
    } else {
      source = PrefixedSource(peeked, file)
      peeked = []
    }
    return isGzip ? try GzipSource(source, name: name) : source
  }

  private func checkWhole() throws(Failure) {
    let source = try content()
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
    defer { buffer.deallocate() }
    var isEmpty = true
    while try source.read(into: buffer) > 0 { isEmpty = false }
    if isEmpty { throw Self.empty(name) }
  }

  /// Copies a stream into a file that has already been unlinked.
  private static func spool(
    _ file: FileSource, in folder: Folder, left: Int, of spoolBytesMax: Int, stop: StopFlag
  ) throws(Failure) -> FileSource {
    let descriptor: Int32
    let name = ".import-\(getpid())-\(UInt64.random(in: .min ... .max))"
    do throws(LedgerError) {
      descriptor = try folder.openDescriptor(name, .create)
      try folder.unlink(name)
    } catch { throw FileSource.fault("spool \(file.name) to", folder.path, error.code) }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
    defer { buffer.deallocate() }
    var total = 0
    while true {
      let count: Int
      do throws(Failure) { count = try file.read(into: buffer) } catch {
        close(descriptor)
        throw error
      }
      if count == 0 { break }
      guard total + count <= left else {
        close(descriptor)
        throw Failure(
          operation: "spool", object: file.name,
          cause:
            "it is longer than the \(spoolBytesMax >> 20) MiB that --strict stores of a stream; "
            + "raise --spool-limit")
      }
      var written = 0
      while written < count {
        let more = write(
          descriptor, UnsafeRawBufferPointer(buffer).baseAddress.map { $0 + written },
          count - written)
        if more < 0, errno != EINTR {
          let code = errno
          close(descriptor)
          throw FileSource.fault("spool \(file.name) to", folder.path, code)
        }
        if more > 0 { written += more }
      }
      total += count
    }
    return FileSource(spool: descriptor, name: file.name, sizeBytes: total, stop: stop)
  }
}
