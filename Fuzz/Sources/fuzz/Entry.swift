// What libFuzzer calls: once at the start with the arguments, then with each input.
import Glibc
import Synchronization

// Set once, before the first input; libFuzzer has one thread.
private let chosenTarget = Mutex<FuzzTarget?>(nil)

private let usage = """
  Usage: fuzz --target=NAME [flags and corpora of libFuzzer]
         fuzz --write-seeds=DIRECTORY     makes DIRECTORY/NAME/seeds and DIRECTORY/NAME.words
         fuzz --list                      prints the targets

  Targets: \(FuzzTarget.all.map(\.name).joined(separator: " "))

  """

private func end(_ message: String, status: Int32) -> Never {
  let bytes = Array(message.utf8)
  _ = bytes.withUnsafeBytes { write(status == 0 ? 1 : 2, $0.baseAddress, $0.count) }
  // Not `exit`: there is no run whose statistics could be printed.
  _exit(status)
}

/// Reads the arguments that libFuzzer leaves alone: those that begin with two dashes.
@c(LLVMFuzzerInitialize)
public func initialize(
  _ argumentCount: UnsafeMutablePointer<CInt>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>
) -> CInt {
  for index in 1..<max(1, Int(argumentCount.pointee)) {
    guard let argument = arguments.pointee[index].map({ String(cString: $0) }) else { continue }
    if argument == "--help" { end(usage, status: 0) }
    if argument == "--list" {
      end(FuzzTarget.all.map { $0.name + "\n" }.joined(), status: 0)
    }
    if let directory = argument.value(after: "--write-seeds=") {
      do {
        for target in FuzzTarget.all { try SeedFiles.write(target, in: directory) }
      } catch { end("fuzz: write seeds: \(error)\n", status: 1) }
      _exit(0)
    }
    if let name = argument.value(after: "--target=") {
      guard let target = FuzzTarget.all.first(where: { $0.name == name }) else {
        end("fuzz: there is no target \(name)\n\n\(usage)", status: 2)
      }
      chosenTarget.withLock { $0 = target }
    }
  }
  if chosenTarget.withLock({ $0 == nil }) { end(usage, status: 2) }
  return 0
}

/// Checks one input.
@c(LLVMFuzzerTestOneInput)
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ byteCount: Int) -> CInt {
  let target = chosenTarget.withLock { $0 }
  target?.check(UnsafeRawBufferPointer(start: start, count: byteCount))
  return 0
}

extension String {
  fileprivate func value(after prefix: String) -> String? {
    hasPrefix(prefix) ? String(dropFirst(prefix.count)) : nil
  }
}
