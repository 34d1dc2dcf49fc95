// Starts the program.
import Glibc

exit(runProgram(Array(CommandLine.arguments.dropFirst())).rawValue)
