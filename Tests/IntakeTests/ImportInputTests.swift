// Inputs that are not regular files, empty, compressed, damaged, or streams.
import Base
import Foundation
import Intake
import Ledger
import TestSupport
import Testing

@Suite(.bounded) struct ImportInputTests {
  private func fault(_ paths: [String], run: ImportRun = ImportRun()) -> String? {
    do {
      _ = try run.run(paths)
      return nil
    } catch {
      #expect(run.appender.submissions.isEmpty)
      return "\(error)"
    }
  }

  @Test func whatCannotBeReadIsSaidBeforeAnythingIsAppended() throws {
    let directory = try TemporaryDirectory()
    let good = try directory.write("good", Sample.line())
    let empty = try directory.write("empty", "")
    let emptyGzip = try directory.write("empty.gz", Gzip.member([]))
    let missing = directory.path + "/missing"
    for (path, cause) in [
      (missing, "open: \(missing): no such file or directory"),
      (directory.path, "read: \(directory.path): is a directory"),
      (empty, "read: \(empty): is empty"),
      (emptyGzip, "read: \(emptyGzip): is empty"),
      ("/dev/null", "read: /dev/null: is empty"),
      ("a\0b", "open: input: the path contains a NUL"),
    ] {
      expectEqual(fault([good, path]), cause)
    }
    expectEqual(fault(["-", good, "-"]), "read: standard input: is given twice")
  }

  @Test func anEndlessStreamIsKeptUpToALimit() throws {
    let directory = try TemporaryDirectory()
    for (limit, isRefused) in [(1 << 20, true), (3 << 20, false)] {
      let path = directory.path("pipe-\(limit)")
      expectEqual(mkfifo(path, 0o600), 0)
      // The writing thread ends with the reader.
      signal(SIGPIPE, SIG_IGN)
      let writer = Thread {
        guard let file = FileHandle(forWritingAtPath: path) else { return }
        let line = Data((Sample.line() + "\n").utf8)
        var written = 0
        while written < 2 << 20 {
          do { try file.write(contentsOf: line) } catch { return }
          written += line.count
        }
      }
      writer.start()
      let open = {
        try ImportInput.openAll(
          [path], spoolFolder: Folder(path: directory.path), spoolBytesMax: limit, stop: StopFlag())
      }
      if isRefused {
        let error = #expect(throws: Failure.self) { try open() }
        expectEqual(
          error?.description,
          "spool: \(path): it is longer than the 1 MiB that --strict stores "
            + "of a stream; raise --spool-limit")
      } else {
        try expectEqual(open().count, 1)
      }
    }
  }

  @Test func anUnreadableFileIsSaid() throws {
    let directory = try TemporaryDirectory()
    let path = try directory.write("secret", Sample.line())
    chmod(path, 0)
    // Root may read anything.
    if geteuid() != 0 { expectEqual(fault([path]), "open: \(path): permission denied") }
  }

  @Test func aCutGzipFileAppendsNothing() throws {
    let directory = try TemporaryDirectory()
    let good = try directory.write("good", Sample.line())
    let whole = Gzip.member(
      Array((0..<50).map { Sample.line(transaction: $0) + "\n" }.joined().utf8))
    for count in [3, 10, 100, whole.count / 2, whole.count - 1] {
      let path = try directory.write("cut.gz", Array(whole[0..<count]))
      expectEqual(fault([good, path]), "inflate: \(path): the gzip data is truncated")
    }
    var damaged = whole
    damaged[whole.count / 2] ^= 1
    let path = try directory.write("damaged.gz", damaged)
    expectEqual(fault([good, path]), "inflate: \(path): the gzip data is damaged")
  }

  @Test func aGzipFileIsKnownByItsContent() throws {
    let directory = try TemporaryDirectory()
    let run = ImportRun()
    let member = { Gzip.member(Array("\(Sample.line(transaction: $0))\n".utf8)) }
    let path = try directory.write("history.ndjson", member(1) + member(2))
    let (summary, _) = try run.run([path])
    expectEqual(summary.uploads, 2)
    expectEqual(run.appender.events.compactMap { $0.data["line"] }, [.number("1"), .number("2")])
  }

  /// Runs an import of a named pipe that is fed these bytes.
  private func piped(
    _ bytes: [UInt8], _ run: ImportRun
  ) throws -> (summary: ImportSummary, problems: [ImportProblem]) {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/pipe"
    expectEqual(mkfifo(path, 0o600), 0)
    let writer = Thread {
      guard let handle = FileHandle(forWritingAtPath: path) else { return }
      try? handle.write(contentsOf: Data(bytes))
      try? handle.close()
    }
    writer.start()
    return try run.run([path])
  }

  @Test(arguments: [false, true])
  func aStreamIsReadOnce(isStrict: Bool) throws {
    var run = ImportRun()
    run.options.isStrict = isStrict
    let text = (0..<200).map { Sample.line(transaction: $0) + "\n" }.joined()
    let (summary, _) = try piped(Array(text.utf8), run)
    expectEqual(summary.uploads, 200)
    expectEqual(summary.exitCode, .done)
  }

  @Test func aCutGzipStreamGivesItsWholeLinesAndAnError() throws {
    let run = ImportRun()
    let text = (0..<200).map { Sample.line(transaction: $0) + "\n" }.joined()
    let whole = Gzip.member(Array(text.utf8))
    let (summary, problems) = try piped(Array(whole[0..<whole.count / 2]), run)
    #expect((90...110).contains(summary.uploads))
    #expect(problems.isEmpty)
    expectEqual(summary.exitCode, .failed)
    #expect(summary.failure?.description.hasSuffix("/pipe: the gzip data is truncated") == true)
    expectEqual(summary.positions, 0...(summary.uploads * 2 - 1))
  }

  @Test func aStrictStreamThatIsCutAppendsNothing() throws {
    var run = ImportRun()
    run.options.isStrict = true
    let whole = Gzip.member(Array((Sample.line() + "\n").utf8))
    #expect(throws: Failure.self) { try piped(Array(whole.dropLast()), run) }
    #expect(run.appender.submissions.isEmpty)
  }

  @Test func anEmptyStreamIsSaid() throws {
    #expect(throws: Failure.self) { try piped([], ImportRun()) }
  }
}
