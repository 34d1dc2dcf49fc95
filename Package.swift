// swift-tools-version: 6.2
// The package: targets in the order in which data flows, and who may know whom.
import PackageDescription

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .treatAllWarnings(as: .error),
  // The fold calls the JSON cursor for each byte that matters: it must inline across modules.
  .unsafeFlags(["-cross-module-optimization"], .when(configuration: .release)),
]

func systemLibrary(_ name: String, pkgConfig: String, debian package: String) -> Target {
  .systemLibrary(
    name: name, path: "Sources/CLibraries/\(name)", pkgConfig: pkgConfig,
    providers: [.apt([package])])
}

func library(_ name: String, knows dependencies: [Target.Dependency]) -> Target {
  .target(name: name, dependencies: dependencies, swiftSettings: strict)
}

func tests(
  _ name: String, of dependencies: [Target.Dependency], data: [String] = []
) -> Target {
  .testTarget(
    name: name, dependencies: dependencies + ["TestSupport"], exclude: data, swiftSettings: strict)
}

let package = Package(
  name: "receipt-ledger",
  products: [.executable(name: "ledgerctl", targets: ["ledgerctl"])],
  targets: [
    systemLibrary("CSQLite", pkgConfig: "sqlite3", debian: "libsqlite3-dev"),
    systemLibrary("CZlib", pkgConfig: "zlib", debian: "zlib1g-dev"),
    systemLibrary("CDeflate", pkgConfig: "libdeflate", debian: "libdeflate-dev"),
    systemLibrary("CCrypto", pkgConfig: "libcrypto", debian: "libssl-dev"),
    library("Time", knows: []),
    library("JSON", knows: []),
    library("Ledger", knows: ["Time", "JSON", "CDeflate", "CCrypto"]),
    library("AppStore", knows: ["Time", "JSON", "CCrypto"]),
    library("Projections", knows: ["Time", "JSON", "Ledger", "AppStore", "CSQLite"]),
    library(
      "Intake", knows: ["Time", "JSON", "Ledger", "AppStore", "Projections", "CZlib", "CCrypto"]),
    .executableTarget(
      name: "ledgerctl",
      dependencies: ["Time", "JSON", "Ledger", "AppStore", "Projections", "Intake"],
      swiftSettings: strict),
    // For the demo, tests and measurements; never part of what is shipped.
    .executableTarget(
      name: "generate-history", dependencies: ["Time", "JSON"],
      path: "Development/generate-history", swiftSettings: strict),
    .target(
      name: "TestSupport", dependencies: ["Time", "JSON", "Ledger", "Projections"],
      path: "Tests/TestSupport",
      swiftSettings: strict),
    tests("JSONTests", of: ["JSON", "Time"]),
    tests("LedgerTests", of: ["Ledger", "Time", "JSON", "CCrypto"]),
    tests("AppStoreTests", of: ["AppStore", "Time", "JSON", "CCrypto"]),
    tests("ProjectionTests", of: ["Projections", "AppStore", "Ledger", "Time", "JSON"]),
    tests("IntakeTests", of: ["Intake", "Projections", "AppStore", "Ledger", "Time", "JSON"]),
    tests(
      "ledgerctlTests", of: ["ledgerctl", "Ledger", "Time", "JSON"], data: ["Transcripts"]),
  ]
)
