// swift-tools-version: 6.2
// The benchmarks: what script/bench measures inside a process, and the programs it compares with.
import PackageDescription

/// The modules' `package` declarations are seen by whoever is compiled under the package's own name,
/// which SwiftPM derives from the name of the directory that the package lies in.
let packageName = String(
  (Context.packageDirectory.split(separator: "/").dropLast().last ?? "").lowercased()
    .map { $0.isLetter || $0.isNumber ? $0 : "_" })

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .treatAllWarnings(as: .error),
  .unsafeFlags(["-package-name", packageName]),
]

let modules: Target.Dependency = .product(name: "LedgerModules", package: "receipt-ledger")

let package = Package(
  name: "benchmarks",
  dependencies: [.package(name: "receipt-ledger", path: "..")],
  targets: [
    .executableTarget(
      name: "ledger-benchmark", dependencies: [modules], swiftSettings: strict),
    // Does nothing, but is linked with all that ledgerctl is linked with.
    .executableTarget(name: "empty-program", dependencies: [modules], swiftSettings: strict),
  ]
)
