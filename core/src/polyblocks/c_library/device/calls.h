/* What the program's functions call. A program may have any name but one of these. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)
/* Run the program; the stream counts if arrays are on the device. */
int32_t _library_call(void *stream, void *const *arrays, const size_t *counts);
/* Weights that are bound. */
struct bound;
int32_t _library_bind(void *const *weights, const size_t *counts, struct bound **bound);
/* Run the program; the places of the weights in `arrays` are filled. */
int32_t _library_run(struct bound *bound, void *stream, void **arrays, const size_t *counts);
int32_t _library_unbind(struct bound *bound);
/* Wait for a stream, and tell of checks that failed. */
int32_t _library_synchronize(void *stream);
int32_t _library_release(void);
const char *_library_error(void);
const char *_library_arch(void);
#pragma GCC visibility pop
