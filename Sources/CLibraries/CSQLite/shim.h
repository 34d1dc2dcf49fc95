// SQLite, with what Swift cannot import: a macro, a variadic function, a global variable, a function that older
// versions lack.
#ifndef CSQLITE_SHIM_H
#define CSQLITE_SHIM_H
#include <sqlite3.h>
static inline sqlite3_destructor_type csqlite_transient(void) { return SQLITE_TRANSIENT; }
static inline int csqlite_configure(sqlite3 *database, int option, int value) {
  return sqlite3_db_config(database, option, value, (int *)0);
}
// The byte of the statement at which the last error was found; -1 if it is not known.
static inline int csqlite_error_offset(sqlite3 *database) {
#if SQLITE_VERSION_NUMBER >= 3038000
  return sqlite3_error_offset(database);
#else
  return -1;
#endif
}
// The folder for temporary files of the whole process; without a path, SQLite chooses again.
static inline void csqlite_use_temporary_folder(const char *path) {
  sqlite3_free(sqlite3_temp_directory);
  sqlite3_temp_directory = path ? sqlite3_mprintf("%s", path) : (char *)0;
}
#endif
