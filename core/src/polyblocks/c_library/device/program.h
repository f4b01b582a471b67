/* A program for GPUs as tables: what is generated, and what library.c runs. */
#pragma once

#include "calls.h"
#include "expected.h"

struct launch {
  const char *kernel;
  unsigned grid[3], block[3], shared_bytes;
  uint32_t count;        /* of operands */
  const uint32_t *slots; /* where each of them is in the argument block */
};

/* What a slot of the argument block holds: an address plus a number of bytes, a number, or a word of
 * a tensor map, which a row counts.
 */
enum kind { ROW, WORKSPACE, STATUS_WORD, VALUE, MAP_WORD };

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

enum { MAP_WORDS = 16, MAP_DIMENSIONS = 5 };

/* An array of which kernels copy boxes, the innermost dimension first. Its address is the first word
 * of the tensor map that the driver makes of it, and in no other word.
 *
 * Or pixels that windows are at: a box is channels and pixels then, and all dimensions but the first
 * and the last one have a lower corner, an upper one from the last place on, and a step.
 */
struct tensor_map {
  int is_im2col;
  uint32_t element_bytes, rank;
  uint64_t extents[MAP_DIMENSIONS], strides[MAP_DIMENSIONS]; /* of strides rank - 1 */
  uint32_t box[MAP_DIMENSIONS];
  int32_t lower[MAP_DIMENSIONS - 2], upper[MAP_DIMENSIONS - 2];
  uint32_t steps[MAP_DIMENSIONS - 2];
};

/* The program for one architecture. */
struct plan {
  const char *arch;
  uint32_t launch_count, slot_count, row_count, check_count, map_count;
  const struct launch *launches;
  const struct slot *slots;
  const struct row *rows;
  const char *const *checks;
  const struct tensor_map *maps;
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
  uint32_t first_weight, weight_count; /* among the arrays: those that can be bound */
  const struct expected *arrays;
  const struct plan *plans;
  const struct image *images;
  const struct stored *stored;
};

/* Its name is none that a program has. */
extern const struct program _library_program __attribute__((visibility("hidden")));
