/* An array that a program takes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct expected {
  const char *name, *what;
  size_t count, size; /* of C's elements, and bytes of one */
  uintptr_t alignment;
  int written;
};
