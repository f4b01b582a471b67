/* What every library checks of a call, and how it says what is wrong.
 *
 * statuses.h is generated: STATUS_OK and so on, with the numbers of the program's header.
 */
#include <stdarg.h>
#include <stdio.h>

#include "expected.h"
#include "statuses.h"

static _Thread_local char error_text[1024];

/* Keep a message for the thread; returns the status. */
__attribute__((format(printf, 2, 3)))
static int32_t fail(int32_t status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error_text, sizeof error_text, format, arguments);
  va_end(arguments);
  return status;
}

static int overlap(const struct expected *a, uintptr_t at, const struct expected *b,
                   uintptr_t other) {
  return at < other + b->count * b->size && other < at + a->count * a->size;
}

static int32_t check(const char *program, const struct expected *expected, void *const *arrays,
                     const size_t *counts, size_t number) {
  for (size_t k = 0; k < number; ++k) {
    const struct expected *e = &expected[k];
    if (counts[k] != e->count)
      return fail(STATUS_WRONG_SIZE, "%s: argument '%s' is %s, %zu elements; got %zu", program,
                  e->name, e->what, e->count, counts[k]);
    if (!arrays[k] && e->count)
      return fail(STATUS_NULL_POINTER, "%s: argument '%s' is NULL", program, e->name);
    if ((uintptr_t)arrays[k] % e->alignment)
      return fail(STATUS_MISALIGNED, "%s: argument '%s' must be aligned to %zu bytes", program,
                  e->name, (size_t)e->alignment);
  }
  for (size_t k = 0; k < number; ++k)
    for (size_t other = 0; other < number; ++other)
      if (k != other && expected[k].written &&
          overlap(&expected[k], (uintptr_t)arrays[k], &expected[other], (uintptr_t)arrays[other]))
        return fail(STATUS_OVERLAP, "%s: '%s' is written and shares memory with '%s'", program,
                    expected[k].name, expected[other].name);
  return STATUS_OK;
}
