// The directory of the package's executables while tests run.
import Foundation

package enum BuiltProducts {
  /// The directory of the test bundle, where the package's executables are built too.
  package static let path: String = {
    // The bundle either runs by itself or is mapped into another program.
    let program = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let bundle = program.flatMap { $0.hasSuffix(".xctest") ? $0 : nil } ?? mappedBundle
    guard let bundle else { return "." }
    return URL(fileURLWithPath: bundle).deletingLastPathComponent().path
  }()

  private static var mappedBundle: String? {
    let maps = (try? String(contentsOfFile: "/proc/self/maps", encoding: .utf8)) ?? ""
    let line = maps.split(separator: "\n").first { $0.hasSuffix(".xctest") }
    return line.flatMap { line in line.firstIndex(of: "/").map { String(line[$0...]) } }
  }
}
