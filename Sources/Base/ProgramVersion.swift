// The version of the program, and what it was built with.

/// The version of the program, as `--version` prints it.
package let programVersion = "0.1.0"

/// The day on which that version was made, as manual pages show it.
package let programReleaseDate = "2026-11-23"

/// The compiler's version, as far as a program can ask for it.
package var compilerVersion: String {
  #if compiler(>=6.5)
    "6.5 or later"
  #elseif compiler(>=6.4)
    "6.4"
  #elseif compiler(>=6.3)
    "6.3"
  #else
    "6.2"
  #endif
}

/// Whether the program was optimized.
package var buildConfiguration: String {
  #if DEBUG
    "debug"
  #else
    "release"
  #endif
}
