// swift-tools-version: 6.2
// The package: targets in the order in which data flows, and who may know whom.
import PackageDescription

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .treatAllWarnings(as: .error),
]

// Tests, and what only they use: optimizing it would take longer than running it.
let unoptimized: SwiftSetting = .unsafeFlags(["-Onone"], .when(configuration: .release))

func systemLibrary(_ name: String, pkgConfig: String, debian package: String) -> Target {
  .systemLibrary(
    name: name, path: "Sources/CLibraries/\(name)", pkgConfig: pkgConfig,
    providers: [.apt([package])])
}

func library(_ name: String, knows dependencies: [Target.Dependency]) -> Target {
  .target(name: name, dependencies: dependencies, swiftSettings: strict)
}

// The fold calls the JSON cursor for each byte and the tables of Revenue for each event: what these modules offer
// is inlined in others.
func inlinedLibrary(_ name: String, knows dependencies: [Target.Dependency]) -> Target {
  .target(
    name: name, dependencies: dependencies,
    swiftSettings: strict + [
      .unsafeFlags(["-cross-module-optimization"], .when(configuration: .release))
    ])
}

func tests(
  _ name: String, of dependencies: [Target.Dependency], data: [String] = []
) -> Target {
  .testTarget(
    name: name, dependencies: dependencies + ["TestSupport"], exclude: data,
    swiftSettings: strict + [unoptimized])
}

let package = Package(
  name: "receipt-ledger",
  products: [
    .executable(name: "ledgerctl", targets: ["ledgerctl"]),
    .executable(name: "ledger-rules", targets: ["ledger-rules"]),
    // For the nested packages alone; nothing in it is a promise to others.
    .library(
      name: "LedgerModules",
      targets: [
        "Base", "Ledger", "AppStore", "HTTPClient", "Revenue", "Projections", "Intake",
        "Erasure", "Replication", "Server", "AppStoreAuthority",
      ]),
  ],
  targets: [
    systemLibrary("CSQLite", pkgConfig: "sqlite3", debian: "libsqlite3-dev"),
    systemLibrary("CZlib", pkgConfig: "zlib", debian: "zlib1g-dev"),
    systemLibrary("CDeflate", pkgConfig: "libdeflate", debian: "libdeflate-dev"),
    // The system's own: no package to install.
    .systemLibrary(name: "CLinux", path: "Sources/CLibraries/CLinux"),
    systemLibrary("CCrypto", pkgConfig: "libcrypto", debian: "libssl-dev"),
    systemLibrary("CCurl", pkgConfig: "libcurl", debian: "libcurl4-openssl-dev"),
    systemLibrary("CMicroHTTPD", pkgConfig: "libmicrohttpd", debian: "libmicrohttpd-dev"),
    systemLibrary("CXlsxWriter", pkgConfig: "xlsxwriter", debian: "libxlsxwriter-dev"),
    inlinedLibrary("Base", knows: ["CCrypto"]),
    inlinedLibrary("Ledger", knows: ["Base", "CDeflate", "CCrypto", "CLinux"]),
    inlinedLibrary("AppStore", knows: ["Base", "CCrypto"]),
    // Apart from AppStore, so that what never asks the App Store links no libcurl.
    library("HTTPClient", knows: ["Base", "AppStore", "CCrypto", "CCurl"]),
    inlinedLibrary("Revenue", knows: ["Base", "AppStore"]),
    inlinedLibrary(
      "Projections",
      knows: ["Base", "Ledger", "AppStore", "Revenue", "CSQLite", "CZlib", "CLinux"]),
    library("AdditionalProjections", knows: ["Base", "Ledger", "Projections"]),
    library(
      "ReportDocuments",
      knows: ["Base", "Ledger", "Projections", "Revenue", "CXlsxWriter", "CZlib"]),
    library("Intake", knows: ["Base", "Ledger", "AppStore", "Revenue", "CZlib"]),
    library(
      "Erasure",
      knows: ["Base", "Ledger", "AppStore", "Revenue", "Projections", "CLinux"]),
    library("Replication", knows: ["Base", "Ledger", "HTTPClient", "CCrypto"]),
    library("Merge", knows: ["Base", "Ledger", "Revenue"]),
    library(
      "Server",
      knows: [
        "Base", "Ledger", "AppStore", "HTTPClient", "Revenue", "Projections", "Intake",
        "Erasure", "Replication", "CMicroHTTPD",
      ]),
    // All of ledgerctl but its start: tests see a library, and depend on no program.
    .target(
      name: "Commands",
      dependencies: [
        "Base", "Ledger", "AppStore", "HTTPClient", "Revenue", "Projections", "Intake",
        "Erasure", "Replication", "Merge", "Server", "AdditionalProjections",
        "ReportDocuments",
      ],
      path: "Sources/ledgerctl", exclude: ["Main"], swiftSettings: strict),
    .executableTarget(
      name: "ledgerctl", dependencies: ["Commands"], path: "Sources/ledgerctl/Main",
      swiftSettings: strict,
      // Machines that run it have no Swift. All names are looked up at the start, so that the table of addresses can
      // be made read-only.
      linkerSettings: [
        .unsafeFlags(
          ["-static-stdlib", "-Xlinker", "-z", "-Xlinker", "now"], .when(configuration: .release))
      ]),
    library(
      "LedgerRules",
      knows: ["Base", "Ledger", "AppStore", "Revenue", "Projections", "Merge"]),
    .executableTarget(
      name: "ledger-rules", dependencies: ["LedgerRules"], swiftSettings: strict,
      // A release runs on any Linux of its architecture: executors have neither Swift nor these libraries.
      linkerSettings: [
        .unsafeFlags(["-static-executable"], .when(configuration: .release))
      ]),
    // For the demo, tests and measurements; never part of what is shipped.
    .executableTarget(
      name: "generate-history",
      dependencies: ["AppStoreAuthority", "ProgramSupport", "AppStore", "Base"],
      path: "Development/generate-history", swiftSettings: strict),
    .executableTarget(
      name: "resegment", dependencies: ["Ledger", "ProgramSupport"],
      path: "Development/resegment", swiftSettings: strict),
    .target(
      name: "AppStoreAuthority", dependencies: ["ProgramSupport", "AppStore", "Base", "CCrypto"],
      path: "Development/AppStoreAuthority", swiftSettings: strict),
    .target(
      name: "AppStoreStandIn",
      dependencies: ["AppStoreAuthority", "AppStore", "Base", "CMicroHTTPD"],
      path: "Development/AppStoreStandIn", swiftSettings: strict),
    .executableTarget(
      name: "app-store-stand-in",
      dependencies: [
        "AppStoreStandIn", "AppStoreAuthority", "ProgramSupport", "AppStore", "Base",
      ],
      path: "Development/app-store-stand-in", swiftSettings: strict),
    .target(
      name: "ProgramSupport", path: "Development/ProgramSupport", swiftSettings: strict),
    .systemLibrary(name: "CEpoll", path: "Development/CEpoll"),
    .executableTarget(
      name: "upload-load", dependencies: ["ProgramSupport", "Base", "CEpoll"],
      path: "Development/upload-load", swiftSettings: strict),
    .executableTarget(
      name: "object-store-tool", dependencies: ["Replication", "ProgramSupport", "Base"],
      path: "Development/object-store-tool", swiftSettings: strict),
    .executableTarget(
      name: "ledger-benchmark",
      dependencies: [
        "Base", "Ledger", "Projections", "AppStore", "AppStoreAuthority", "ProgramSupport",
        "CSQLite", "CDeflate",
      ],
      path: "Benchmarks/ledger-benchmark", swiftSettings: strict),
    // Does nothing, but is linked with all that ledgerctl is linked with.
    .executableTarget(
      name: "empty-program",
      dependencies: [
        "Base", "Ledger", "AppStore", "HTTPClient", "Revenue", "Projections", "Intake",
        "Server", "ReportDocuments",
      ],
      path: "Benchmarks/empty-program", swiftSettings: strict),
    .target(
      name: "TestSupport",
      dependencies: [
        "Base", "Ledger", "Revenue", "Projections", "Replication", "AppStoreAuthority",
      ],
      path: "Tests/TestSupport", swiftSettings: strict + [unoptimized]),
    tests("BaseTests", of: ["Base"]),
    tests("LedgerTests", of: ["Ledger", "Base", "CCrypto"]),
    tests(
      "AppStoreTests",
      of: ["AppStore", "HTTPClient", "AppStoreAuthority", "Base", "CCrypto"]),
    tests("ReplicationTests", of: ["Replication", "Ledger", "Base"]),
    tests("RevenueTests", of: ["Revenue", "AppStore", "Base"]),
    tests("ProjectionTests", of: ["Projections", "Revenue", "AppStore", "Ledger", "Base"]),
    tests(
      "ReportDocumentsTests",
      of: ["ReportDocuments", "Projections", "Revenue", "AppStore", "Ledger", "Base"]),
    tests(
      "IntakeTests",
      of: ["Intake", "Revenue", "AppStore", "AppStoreAuthority", "Ledger", "Base"]),
    tests(
      "ErasureTests",
      of: [
        "Erasure", "Projections", "Revenue", "AppStore", "AppStoreAuthority", "Ledger", "Base",
      ]),
    tests(
      "MergeTests",
      of: ["Merge", "Erasure", "Projections", "Revenue", "Ledger", "Base"]),
    tests(
      "ServerTests",
      of: [
        "Server", "Erasure", "Intake", "Projections", "Revenue", "AppStore", "HTTPClient",
        "AppStoreAuthority", "Ledger", "Base",
      ]),
    tests(
      "LedgerRulesTests",
      of: [
        "LedgerRules", "Merge", "Projections", "Revenue", "AppStore", "AppStoreAuthority",
        "Ledger", "Base",
      ]),
    tests(
      "DevelopmentTests",
      of: [
        "AppStoreAuthority", "AppStoreStandIn", "app-store-stand-in", "upload-load",
        "generate-history", "resegment", "ProgramSupport", "AppStore", "Ledger", "Base",
      ]),
    tests(
      "ledgerctlTests",
      of: [
        "Commands", "Server", "Erasure", "Intake", "ReportDocuments", "Projections", "Ledger",
        "Base",
      ],
      data: ["Transcripts", "EarlierLedgers"]),
  ]
)
