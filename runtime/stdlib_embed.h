// SPDX-License-Identifier: Apache-2.0
// The standard library's sources inside the library, so that `import "std/..."` needs no installed
// files. The definitions are generated from stdlib/*.tk while building (cmake/embed.cmake).
#ifndef TK_RUNTIME_STDLIB_EMBED_H
#define TK_RUNTIME_STDLIB_EMBED_H

#include <stddef.h>

struct tk_embedded {
    const char *name; // the file's name within stdlib/, such as "softmax.tk"
    const char *text; // NUL-terminated as well
    size_t size;      // in bytes, without that NUL
};

// Sorted by name; one entry of NULLs follows the last.
extern const struct tk_embedded tk_stdlib_files[];
extern const size_t tk_stdlib_count;

#endif
