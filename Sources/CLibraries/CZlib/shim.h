// zlib, with the macros that Swift cannot import.
#ifndef CZLIB_SHIM_H
#define CZLIB_SHIM_H
#include <zlib.h>
static inline int czlib_inflate_init_gzip(z_streamp stream) { return inflateInit2(stream, 15 + 16); }
// Without a header and a checksum, as in a zip file.
static inline int czlib_inflate_init_raw(z_streamp stream) { return inflateInit2(stream, -15); }
static inline int czlib_deflate_init_raw(z_streamp stream, int level) {
  // A window of 32 KiB, and little memory for the short texts that need no header.
  return deflateInit2(stream, level, Z_DEFLATED, -15, 6, Z_DEFAULT_STRATEGY);
}
#endif
