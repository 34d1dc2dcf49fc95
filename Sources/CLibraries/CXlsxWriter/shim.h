// libxlsxwriter, which writes Excel files, and a stream of the C library that calls back.
#ifndef CXLSXWRITER_SHIM_H
#define CXLSXWRITER_SHIM_H
#include <stddef.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <sys/types.h>
#include <xlsxwriter.h>
// After the types that it uses.
#include <bits/types/cookie_io_functions_t.h>

// The C library declares it for GNU programs only.
extern FILE *fopencookie(void *, const char *, cookie_io_functions_t);

static inline ssize_t cxlsx_read_nothing(void *context, char *buffer, size_t count) {
  (void)context; (void)buffer; (void)count;
  return 0;
}

static inline int cxlsx_seek_nowhere(void *context, __off64_t *offset, int whence) {
  (void)context; (void)whence;
  *offset = 0;
  return 0;
}

// A stream that passes what is written to `write`, and that is empty when it is read. One thread uses it.
static inline FILE *cxlsx_open_stream(
    void *context, ssize_t (*write)(void *, const char *, size_t), int (*close)(void *)) {
  cookie_io_functions_t functions = {cxlsx_read_nothing, write, cxlsx_seek_nowhere, close};
  FILE *stream = fopencookie(context, "w+", functions);
  if (stream != NULL) {
    (void)setvbuf(stream, NULL, _IOFBF, 1 << 16);
    (void)__fsetlocking(stream, FSETLOCKING_BYCALLER);
  }
  return stream;
}
#endif
