// Linux calls that the C library declares for GNU programs only.
#ifndef CLINUX_SHIM_H
#define CLINUX_SHIM_H
#include <sys/syscall.h>
#include <stddef.h>
#include <unistd.h>
// memmem(3): where one text stands in another; NULL if it does not.
extern void *memmem(const void *, size_t, const void *, size_t);
static inline const void *clinux_find(
    const void *text, size_t text_size, const void *part, size_t part_size) {
  return memmem(text, text_size, part, part_size);
}
// sync_file_range(2) of the whole file with SYNC_FILE_RANGE_WRITE: it begins to write, and waits at most
// for room in the queue of the disk.
// The arguments are 64 bits wide: on 32-bit systems they are passed otherwise, and there it is left out.
static inline void clinux_start_writing(int descriptor) {
#if defined(SYS_sync_file_range) && defined(__LP64__)
  (void)syscall(SYS_sync_file_range, descriptor, 0L, 0L, 2L);
#else
  (void)descriptor;
#endif
}
#endif
