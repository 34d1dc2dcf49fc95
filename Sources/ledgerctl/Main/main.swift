// Starts the program.
import Commands
import Glibc

exit(runProgram(Array(CommandLine.arguments.dropFirst())))
