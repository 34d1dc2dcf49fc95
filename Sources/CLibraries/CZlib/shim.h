// zlib, with the macros that Swift cannot import.
#ifndef CZLIB_SHIM_H
#define CZLIB_SHIM_H
#include <zlib.h>
static inline int czlib_inflate_init_gzip(z_streamp stream) { return inflateInit2(stream, 15 + 16); }
// Without a header and a checksum, as in a zip file.
static inline int czlib_inflate_init_raw(z_streamp stream) { return inflateInit2(stream, -15); }
#endif
