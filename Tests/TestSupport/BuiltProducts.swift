// Where the package's executables lie while tests run.
import Foundation

package enum BuiltProducts {
  /// The directory of the test bundle, where the package's executables are built too.
  package static let path: String = {
    // Whichever program runs the tests, it has mapped the bundle.
    let maps = (try? String(contentsOfFile: "/proc/self/maps", encoding: .utf8)) ?? ""
    let bundle = maps.split(separator: "\n").first { $0.hasSuffix(".xctest") }
    guard let bundle, let slash = bundle.firstIndex(of: "/") else { return "." }
    return URL(fileURLWithPath: String(bundle[slash...])).deletingLastPathComponent().path
  }()
}
