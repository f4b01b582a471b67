/* A program for GPUs as tables: what is generated, and what library.c runs. */
#pragma once

#include "expected.h"

#define HIDDEN __attribute__((visibility("hidden")))

struct launch {
  const char *kernel;
  unsigned grid[3], block[3], shared_bytes;
  uint32_t count;        /* of operands */
  const uint32_t *slots; /* where each of them is in the argument block */
};

/* What a slot of the argument block holds: an address plus a number of bytes, or a number. */
enum kind { ROW, WORKSPACE, STATUS_WORD, VALUE };

struct slot {
  enum kind kind;
  uint32_t row;
  uint64_t number;
};

/* An array of the program; one that is not the caller's is stored. */
struct row {
  int is_stored;
  uint32_t index; /* among the caller's arrays, or among those that are stored */
  uint32_t home;  /* the row whose memory it is */
  uint64_t bytes;
  int is_read, is_written;
};

/* The program for one architecture. */
struct plan {
  const char *arch;
  uint32_t launch_count, slot_count, row_count, check_count;
  const struct launch *launches;
  const struct slot *slots;
  const struct row *rows;
  const char *const *checks;
  uint64_t workspace_bytes;
  int has_status;
};

/* Code for one architecture. */
struct image {
  uint32_t plan;
  const char *form;
  const char *code;
  size_t bytes;
};

struct stored {
  const char *contents;
  uint64_t bytes;
};

struct program {
  const char *name;
  uint32_t array_count, plan_count, image_count, stored_count;
  const struct expected *arrays;
  const struct plan *plans;
  const struct image *images;
  const struct stored *stored;
};

/* The names of what follows are none that a program has. */
extern const struct program _library_program HIDDEN;

/* Run the program; the stream counts if arrays are on the device. */
HIDDEN int32_t _library_call(void *stream, void *const *arrays, const size_t *counts);
/* Wait for a stream, and tell of checks that failed. */
HIDDEN int32_t _library_synchronize(void *stream);
HIDDEN int32_t _library_release(void);
HIDDEN const char *_library_error(void);
HIDDEN const char *_library_arch(void);
