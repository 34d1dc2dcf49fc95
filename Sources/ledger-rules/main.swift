// Starts the program.
import Glibc
import LedgerRules

exit(RulesProgram.run(Array(CommandLine.arguments.dropFirst())))
