// Starts the program.
import Glibc
import Ledger

OpenFileLimit.raise()
exit(runProgram(Array(CommandLine.arguments.dropFirst())).rawValue)
