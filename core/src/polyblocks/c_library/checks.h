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

/* Check each of the arrays from `begin` to before `end`. */
static int32_t check_each(const char *program, const struct expected *expected,
                          void *const *arrays, const size_t *counts, size_t begin, size_t end) {
  for (size_t k = begin; k < end; ++k) {
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
  return STATUS_OK;
}

/* Check that what is written is no other array, of all before `number`; that the arrays from
 * `begin` to before `end` do not overlap each other is known. */
static int32_t check_overlaps(const char *program, const struct expected *expected,
                              void *const *arrays, size_t number, size_t begin, size_t end) {
  for (size_t k = 0; k < number; ++k) {
    if (!expected[k].written) continue;
    int known = begin <= k && k < end;
    for (size_t other = 0; other < number; ++other) {
      if (other == k || (known && begin <= other && other < end)) continue;
      if (overlap(&expected[k], (uintptr_t)arrays[k], &expected[other], (uintptr_t)arrays[other]))
        return fail(STATUS_OVERLAP, "%s: '%s' is written and shares memory with '%s'", program,
                    expected[k].name, expected[other].name);
    }
  }
  return STATUS_OK;
}

static int32_t check(const char *program, const struct expected *expected, void *const *arrays,
                     const size_t *counts, size_t number) {
  int32_t status = check_each(program, expected, arrays, counts, 0, number);
  return status ? status : check_overlaps(program, expected, arrays, number, 0, 0);
}

/* Check the weights, `count` arrays from `first` on, which are given alone. */
__attribute__((unused)) static int32_t check_weights(
    const char *program, const struct expected *expected, void *const *weights,
    const size_t *counts, size_t first, size_t count, void *bound) {
  if (!weights || !counts || !bound)
    return fail(STATUS_NULL_POINTER, "%s: weights, counts and bound must not be NULL", program);
  int32_t status = check_each(program, expected + first, weights, counts, 0, count);
  return status ? status : check_overlaps(program, expected + first, weights, count, 0, 0);
}

/* Check a call with bound weights; their places in `arrays` are filled. */
__attribute__((unused)) static int32_t check_others(
    const char *program, const struct expected *expected, void *const *arrays,
    const size_t *counts, size_t number, size_t first, size_t count) {
  int32_t status = check_each(program, expected, arrays, counts, 0, first);
  if (!status) status = check_each(program, expected, arrays, counts, first + count, number);
  return status ? status
                : check_overlaps(program, expected, arrays, number, first, first + count);
}
