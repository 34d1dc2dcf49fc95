// swift-tools-version: 6.2
// The fuzzer: a package of its own, since every module is built with coverage for libFuzzer.
import PackageDescription

let package = Package(
  name: "fuzz",
  dependencies: [.package(name: "receipt-ledger", path: "..")],
  targets: [
    .executableTarget(
      name: "fuzz",
      dependencies: [.product(name: "LedgerModules", package: "receipt-ledger")],
      swiftSettings: [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .treatAllWarnings(as: .error),
      ],
      // The default linker warns of each of the sanitizer's thousands of local symbols.
      linkerSettings: [.unsafeFlags(["-use-ld=lld"])])
  ]
)
