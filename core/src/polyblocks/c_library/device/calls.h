/* What the program's functions call. A program may have any name but one of these. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)
/* Run the program; the stream counts if arrays are on the device. */
int32_t _library_call(void *stream, void *const *arrays, const size_t *counts);
/* Wait for a stream, and tell of checks that failed. */
int32_t _library_synchronize(void *stream);
int32_t _library_release(void);
const char *_library_error(void);
const char *_library_arch(void);
#pragma GCC visibility pop
