/* Runs the program of program.h: code and stored arrays are loaded once per device. */
#include "vendor.h"

#define ALIGNMENT 256
/* Ends what is done at a failure. */
#define TRY(expression) \
  do { \
    int32_t tried = (expression); \
    if (tried) return tried; \
  } while (0)

/* Weights that are bound; on the host, with their copies on devices. */
struct bound {
  struct bound *next, *previous;
  void **arrays;
  uint64_t **copies; /* of each device, NULL before the first call there; 0: not copied */
};

/* What a call on arrays of the host needs for itself; kept for the next one. */
struct lane {
  struct lane *next;
  void *stream;
  uint64_t memory;
};

struct device {
  int has_handle, is_loaded;
  void *handle;
  const struct plan *plan;
  void *module;
  void **functions; /* one per launch */
  uint64_t *map_words;
  uint64_t *stored;
  struct lane *idle[2]; /* for calls with all arrays, and with bound weights */
  pthread_mutex_t lock; /* of the lanes, or of the word */
  /* Arrays on the device: the word that failed checks set, and what the host has seen of it. */
  uint64_t word;
  volatile int32_t *seen;
};

static struct device *devices;
static struct bound *bounds;
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

static int32_t no_host_memory(void) {
  return fail(STATUS_NO_MEMORY, "%s: the host has no memory", PROGRAM);
}

/* --- loading ---------------------------------------------------------------------------------- */

/* The code that a device runs best; NULL if the program has none because it computes nothing. */
static int32_t choose_code(int number, const struct image **image) {
  int best = -1;
  *image = NULL;
  for (uint32_t k = 0; k < _library_program.image_count; ++k) {
    const struct image *each = &_library_program.images[k];
    int rank;
    int said = rank_code(number, _library_program.plans[each->plan].arch, each->form, &rank);
    if (said) return driver_failed("asking for the device's architecture", said, "");
    if (rank >= 0 && (best < 0 || rank < best)) best = rank, *image = each;
  }
  if (*image || !_library_program.image_count) return STATUS_OK;
  char archs[256] = "", name[256] = "";
  for (uint32_t k = 0; k < _library_program.plan_count; ++k) {
    size_t end = strlen(archs);
    snprintf(archs + end, sizeof archs - end, "%s%s", k ? ", " : "", _library_program.plans[k].arch);
  }
  describe_device(number, name, sizeof name);
  return fail(STATUS_UNSUPPORTED_GPU,
              "%s: the library has code for %s; device %d is %s; compile it for that", PROGRAM,
              archs, number, name);
}

static int32_t load_functions(struct device *device, const struct image *image) {
  char log[512] = ": ";
  int said = load_code(image->code, &device->module, log + 2, sizeof log - 3);
  if (said) return driver_failed(symbols.load_module, said, log[2] ? log : "");
  const struct plan *plan = device->plan;
  device->functions = calloc(plan->launch_count, sizeof *device->functions);
  if (!device->functions) return no_host_memory();
  for (uint32_t k = 0; k < plan->launch_count; ++k) {
    const struct launch *launch = &plan->launches[k];
    said = api.find_function(&device->functions[k], device->module, launch->kernel);
    if (said == NOT_FOUND)
      return fail(STATUS_DRIVER_ERROR, "%s: the code has no kernel '%s'", PROGRAM, launch->kernel);
    if (said) return driver_failed(symbols.find_function, said, "");
    said = prepare_function(device->functions[k], launch->shared_bytes);
    if (said) return driver_failed("asking for shared memory", said, "");
  }
  return STATUS_OK;
}

/* Copy bytes of the host into memory of the device, and wait. */
static int32_t fill(uint64_t address, const void *contents, size_t bytes) {
  void *stream;
  TRY(CALL(create_stream, &stream, STREAM_FLAGS));
  int32_t status = CALL(copy_in, address, contents, bytes, stream);
  if (!status) status = CALL(wait, stream);
  int32_t last = CALL(destroy_stream, stream);
  return status ? status : last;
}

static int32_t load_stored(struct device *device) {
  uint32_t count = _library_program.stored_count;
  device->stored = calloc(count + 1, sizeof *device->stored);
  if (!device->stored) return no_host_memory();
  for (uint32_t k = 0; k < count; ++k) {
    const struct stored *each = &_library_program.stored[k];
    if (!each->bytes) continue;
    TRY(CALL(allocate, &device->stored[k], each->bytes));
    TRY(fill(device->stored[k], each->contents, each->bytes));
  }
  return STATUS_OK;
}

/* The words of all tensor maps, but for the addresses, which come with each call. */
static int32_t load_maps(struct device *device) {
  const struct plan *plan = device->plan;
  enum { APART = 256 };
  uint64_t memory = 0;
  if (!plan->map_count) return STATUS_OK;
  device->map_words = calloc(plan->map_count, MAP_WORDS * sizeof *device->map_words);
  if (!device->map_words) return no_host_memory();
  TRY(CALL(allocate, &memory, 2 * APART));
  int32_t status = STATUS_OK;
  for (uint32_t k = 0; !status && k < plan->map_count; ++k) {
    uint64_t *words = device->map_words + k * MAP_WORDS, other[MAP_WORDS];
    int said = encode_map(&plan->maps[k], memory, words);
    if (!said) said = encode_map(&plan->maps[k], memory + APART, other);
    if (said)
      status = driver_failed("making a tensor map", said, "");
    else if (words[0] != memory || other[0] != memory + APART ||
             memcmp(words + 1, other + 1, (MAP_WORDS - 1) * sizeof *words))
      status = fail(STATUS_DRIVER_ERROR, "%s: the " DRIVER " makes tensor maps of another form",
                    PROGRAM);
  }
  int said = api.free(memory);
  return said && !status ? driver_failed(symbols.free, said, "") : status;
}

#if ARRAYS_ON_DEVICE
static int32_t clear_word(struct device *device) {
  const int32_t zero = 0;
  TRY(fill(device->word, &zero, sizeof zero));
  *device->seen = 0;
  return STATUS_OK;
}

static int32_t make_word(struct device *device) {
  void *seen = NULL;
  TRY(CALL(allocate, &device->word, 4));
  TRY(CALL(allocate_host, &seen, 4, HOST_FLAGS));
  device->seen = seen;
  return clear_word(device);
}
#endif

/* Give up what a device has; it is current. Goes on after failures, and returns the first one. */
static int32_t unload(struct device *device) {
  int32_t first = STATUS_OK, status;
#define GIVE_UP(is_there, field, what) \
  if ((is_there) && (status = CALL(field, what)) && !first) first = status;
  for (int kind = 0; kind < 2; ++kind)
    while (device->idle[kind]) {
      struct lane *lane = device->idle[kind];
      device->idle[kind] = lane->next;
      GIVE_UP(lane->memory, free, lane->memory)
      GIVE_UP(1, destroy_stream, lane->stream)
      free(lane);
    }
  for (struct bound *bound = bounds; bound; bound = bound->next) {
    uint64_t *copies = bound->copies ? bound->copies[device - devices] : NULL;
    for (uint32_t k = 0; copies && k < _library_program.weight_count; ++k)
      GIVE_UP(copies[k], free, copies[k])
    free(copies);
    if (copies) bound->copies[device - devices] = NULL;
  }
  for (uint32_t k = 0; device->stored && k < _library_program.stored_count; ++k)
    GIVE_UP(device->stored[k], free, device->stored[k])
  GIVE_UP(device->word, free, device->word)
  GIVE_UP(device->seen, free_host, (void *)device->seen)
  GIVE_UP(device->module, unload_module, device->module)
  free(device->stored);
  free(device->functions);
  free(device->map_words);
  device->stored = NULL, device->functions = NULL, device->seen = NULL, device->module = NULL;
  device->word = 0, device->map_words = NULL;
  device->is_loaded = 0;
  return first;
}

static int32_t load(int number, struct device *device) {
  const struct image *image;
  TRY(choose_code(number, &image));
  device->plan = &_library_program.plans[image ? image->plan : 0];
  int32_t status = image ? load_functions(device, image) : STATUS_OK;
  if (!status) status = load_stored(device);
  if (!status) status = load_maps(device);
#if ARRAYS_ON_DEVICE
  if (!status && device->plan->has_status) status = make_word(device);
#endif
  if (status) {
    /* What went wrong first is told. */
    char text[sizeof error_text];
    memcpy(text, error_text, sizeof text);
    unload(device);
    memcpy(error_text, text, sizeof text);
    return status;
  }
  device->is_loaded = 1;
  return STATUS_OK;
}

static int32_t make_current(struct device *device, int number, void **previous) {
  if (!device->has_handle) {
    int said = device_handle(number, &device->handle);
    if (said) return driver_failed("using the device", said, "");
    device->has_handle = 1;
  }
  int said = activate(device->handle, previous);
  return said ? driver_failed("making the device current", said, "") : STATUS_OK;
}

static int32_t leave(void *previous, int32_t status) {
  int said = restore(previous);
  return said && !status ? driver_failed("making the device current", said, "") : status;
}

/* The thread's device, loaded, and current until `leave`. */
static int32_t enter(struct device **found, void **previous) {
  int number;
  error_text[0] = 0;
  TRY(connect_driver());
  int said = current_device(&number);
  if (said) return driver_failed("asking for the device", said, "");
  pthread_mutex_lock(&loading);
  int32_t status = STATUS_OK;
  if (!devices) {
    devices = calloc(device_count, sizeof *devices);
    if (!devices) status = no_host_memory();
    for (int k = 0; devices && k < device_count; ++k) pthread_mutex_init(&devices[k].lock, NULL);
  }
  struct device *device = &devices[number];
  if (!status) status = make_current(device, number, previous);
  if (!status && !device->is_loaded && (status = load(number, device))) leave(*previous, status);
  pthread_mutex_unlock(&loading);
  *found = device;
  return status;
}

/* --- launching -------------------------------------------------------------------------------- */

static int32_t launch_all(const struct device *device, void *stream, const uint64_t *rows,
                          uint64_t workspace, uint64_t word) {
  const struct plan *plan = device->plan;
  uint64_t arguments[plan->slot_count + 1];
  for (uint32_t k = 0; k < plan->slot_count; ++k) {
    const struct slot *slot = &plan->slots[k];
    uint64_t base[] = {[ROW] = 0, [WORKSPACE] = workspace, [STATUS_WORD] = word, [VALUE] = 0};
    if (slot->kind == ROW) base[ROW] = rows[slot->row];
    if (slot->kind == MAP_WORD)
      arguments[k] = device->map_words[slot->row * MAP_WORDS + slot->number];
    else
      arguments[k] = base[slot->kind] + slot->number;
  }
  for (uint32_t k = 0; k < plan->launch_count; ++k) {
    const struct launch *launch = &plan->launches[k];
    const unsigned *grid = launch->grid, *block = launch->block;
    void *operands[launch->count + 1];
    for (uint32_t n = 0; n < launch->count; ++n) operands[n] = &arguments[launch->slots[n]];
    int said = api.launch(device->functions[k], grid[0], grid[1], grid[2], block[0], block[1],
                          block[2], launch->shared_bytes, stream, operands, NULL);
    if (said) {
      char what[256];
      snprintf(what, sizeof what, "%s of '%s'", symbols.launch, launch->kernel);
      return driver_failed(what, said, "");
    }
  }
  return STATUS_OK;
}

static int32_t check_failed(const struct plan *plan, int32_t code, const char *when) {
  const char *what = code <= (int32_t)plan->check_count ? plan->checks[code - 1] : "a check failed";
  return fail(code, "%s%s", what, when);
}

#if ARRAYS_ON_DEVICE

/* Tell of a check that a launch failed which has run by now; once. */
static int32_t tell_failure(struct device *device) {
  if (!device->seen || !*device->seen) return STATUS_OK;
  pthread_mutex_lock(&device->lock);
  int32_t code = *device->seen, status = STATUS_OK;
  if (code) {
    /* Copies that are under way would bring the old failure again. */
    status = CALL(synchronize);
    if (!status) status = clear_word(device);
  }
  pthread_mutex_unlock(&device->lock);
  if (status || !code) return status;
  return check_failed(device->plan, code, " (in an earlier call)");
}

static int32_t run(struct device *device, void *stream, void *const *arrays, struct bound *bound) {
  const struct plan *plan = device->plan;
  (void)bound; /* they are where they are */
  TRY(tell_failure(device));
  uint64_t rows[plan->row_count + 1], workspace = 0;
  for (uint32_t k = 0; k < plan->row_count; ++k) {
    const struct row *row = &plan->rows[k];
    rows[k] = row->is_stored ? device->stored[row->index] : (uintptr_t)arrays[row->index];
  }
  if (plan->workspace_bytes)
    TRY(CALL(allocate_on_stream, &workspace, plan->workspace_bytes, stream));
  int32_t status = launch_all(device, stream, rows, workspace, device->word);
  if (!status && device->seen)
    status = CALL(copy_out, (void *)device->seen, device->word, 4, stream);
  if (workspace) {
    int said = api.free_on_stream(workspace, stream);
    if (said && !status) status = driver_failed(symbols.free_on_stream, said, "");
  }
  return status;
}

#else

static uint64_t aligned(uint64_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* Whether a row is a weight of which a device has a copy when it is bound. */
static int is_kept(const struct row *row) {
  return !row->is_stored && row->is_read && !row->is_written &&
         row->index >= _library_program.first_weight &&
         row->index < _library_program.first_weight + _library_program.weight_count;
}

/* The copies of bound weights on a device, made by the first call; NULL if none are bound. */
static int32_t copies_of(struct bound *bound, struct device *device, const uint64_t **found) {
  *found = NULL;
  if (!bound) return STATUS_OK;
  pthread_mutex_lock(&device->lock);
  uint64_t *copies = bound->copies[device - devices];
  int32_t status = STATUS_OK;
  if (!copies) {
    copies = calloc(_library_program.weight_count, sizeof *copies);
    if (!copies) status = no_host_memory();
    for (uint32_t k = 0; !status && k < device->plan->row_count; ++k) {
      const struct row *row = &device->plan->rows[k];
      if (!is_kept(row) || !row->bytes) continue;
      uint32_t weight = row->index - _library_program.first_weight;
      status = CALL(allocate, &copies[weight], row->bytes);
      if (!status) status = fill(copies[weight], bound->arrays[weight], row->bytes);
    }
    if (status)
      for (uint32_t k = 0; copies && k < _library_program.weight_count; ++k)
        if (copies[k]) api.free(copies[k]);
    if (status) free(copies), copies = NULL;
    bound->copies[device - devices] = copies;
  }
  pthread_mutex_unlock(&device->lock);
  *found = copies;
  return status;
}

/* Where rows, workspace and status are: in the memory of a lane, but for what is stored or bound;
 * returns how much memory that is. */
static uint64_t place(const struct device *device, uint64_t memory, const uint64_t *copies,
                      uint64_t *rows, uint64_t *workspace, uint64_t *word) {
  const struct plan *plan = device->plan;
  uint64_t end = 0;
  for (uint32_t k = 0; k < plan->row_count; ++k) {
    const struct row *row = &plan->rows[k];
    if (row->is_stored) {
      rows[k] = device->stored[row->index];
    } else if (copies && is_kept(row)) {
      rows[k] = copies[row->index - _library_program.first_weight];
    } else if (row->home == k) {
      rows[k] = row->bytes ? memory + end : 0;
      end += aligned(row->bytes);
    }
  }
  for (uint32_t k = 0; k < plan->row_count; ++k) rows[k] = rows[plan->rows[k].home];
  *workspace = memory + end;
  end += aligned(plan->workspace_bytes);
  *word = memory + end;
  return end + ALIGNMENT;
}

static int32_t make_lane(const struct device *device, const uint64_t *copies,
                         struct lane **made) {
  uint64_t rows[device->plan->row_count + 1], workspace, word;
  uint64_t bytes = place(device, 0, copies, rows, &workspace, &word);
  struct lane *lane = calloc(1, sizeof *lane);
  if (!lane) return no_host_memory();
  int32_t status = CALL(create_stream, &lane->stream, STREAM_FLAGS);
  if (!status && (status = CALL(allocate, &lane->memory, bytes))) api.destroy_stream(lane->stream);
  if (status) {
    free(lane);
    return status;
  }
  *made = lane;
  return STATUS_OK;
}

/* Put a call on the lane's stream; what checks find comes to `failed`. */
static int32_t put(const struct device *device, const struct lane *lane, void *const *arrays,
                   const uint64_t *copies, int32_t *failed) {
  const struct plan *plan = device->plan;
  uint64_t rows[plan->row_count + 1], workspace, word;
  place(device, lane->memory, copies, rows, &workspace, &word);
  for (uint32_t k = 0; k < plan->row_count; ++k) {
    const struct row *row = &plan->rows[k];
    if (row->is_read && !row->is_stored && !(copies && is_kept(row)) && row->bytes)
      TRY(CALL(copy_in, rows[k], arrays[row->index], row->bytes, lane->stream));
  }
  if (plan->has_status) TRY(CALL(copy_in, word, failed, sizeof *failed, lane->stream));
  TRY(launch_all(device, lane->stream, rows, workspace, word));
  if (plan->has_status) TRY(CALL(copy_out, failed, word, sizeof *failed, lane->stream));
  for (uint32_t k = 0; k < plan->row_count; ++k) {
    const struct row *row = &plan->rows[k];
    if (row->is_written && row->bytes)
      TRY(CALL(copy_out, arrays[row->index], rows[k], row->bytes, lane->stream));
  }
  return STATUS_OK;
}

static int32_t run(struct device *device, void *stream, void *const *arrays, struct bound *bound) {
  (void)stream;
  int32_t failed = 0;
  const uint64_t *copies;
  TRY(copies_of(bound, device, &copies));
  struct lane **idle = &device->idle[copies != NULL];
  pthread_mutex_lock(&device->lock);
  struct lane *lane = *idle;
  if (lane) *idle = lane->next;
  pthread_mutex_unlock(&device->lock);
  if (!lane) TRY(make_lane(device, copies, &lane));
  int32_t status = put(device, lane, arrays, copies, &failed);
  /* The arrays are the caller's again, whatever happened. */
  int said = api.wait(lane->stream);
  if (said && !status) status = driver_failed(symbols.wait, said, "");
  pthread_mutex_lock(&device->lock);
  lane->next = *idle;
  *idle = lane;
  pthread_mutex_unlock(&device->lock);
  return status || failed <= 0 ? status : check_failed(device->plan, failed, "");
}

#endif

/* --- what is called --------------------------------------------------------------------------- */

int32_t _library_call(void *stream, void *const *arrays, const size_t *counts) {
  struct device *device;
  void *previous;
  error_text[0] = 0;
  TRY(check(PROGRAM, _library_program.arrays, arrays, counts, _library_program.array_count));
  TRY(enter(&device, &previous));
  return leave(previous, run(device, stream, arrays, NULL));
}

int32_t _library_bind(void *const *weights, const size_t *counts, struct bound **bound) {
  error_text[0] = 0;
  if (bound) *bound = NULL;
  uint32_t first = _library_program.first_weight, count = _library_program.weight_count;
  TRY(check_weights(PROGRAM, _library_program.arrays, weights, counts, first, count, bound));
  TRY(connect_driver());
  struct bound *made = calloc(1, sizeof *made);
  if (made) made->arrays = malloc(count * sizeof *made->arrays);
  if (made) made->copies = calloc(device_count, sizeof *made->copies);
  if (!made || !made->arrays || !made->copies) {
    if (made) free(made->arrays), free(made->copies);
    free(made);
    return no_host_memory();
  }
  memcpy(made->arrays, weights, count * sizeof *made->arrays);
  pthread_mutex_lock(&loading);
  made->next = bounds;
  if (bounds) bounds->previous = made;
  bounds = made;
  pthread_mutex_unlock(&loading);
  *bound = made;
  return STATUS_OK;
}

int32_t _library_run(struct bound *bound, void *stream, void **arrays, const size_t *counts) {
  struct device *device;
  void *previous;
  uint32_t first = _library_program.first_weight, count = _library_program.weight_count;
  error_text[0] = 0;
  if (!bound) return fail(STATUS_NULL_POINTER, "%s: bound is NULL", PROGRAM);
  memcpy(arrays + first, bound->arrays, count * sizeof *arrays);
  TRY(check_others(PROGRAM, _library_program.arrays, arrays, counts, _library_program.array_count,
                   first, count));
  TRY(enter(&device, &previous));
  return leave(previous, run(device, stream, arrays, bound));
}

int32_t _library_unbind(struct bound *bound) {
  int32_t first = STATUS_OK;
  error_text[0] = 0;
  if (!bound) return STATUS_OK;
  pthread_mutex_lock(&loading);
  for (int k = 0; devices && k < device_count; ++k) {
    void *previous;
    if (!bound->copies[k]) continue;
    int32_t status = make_current(&devices[k], k, &previous);
    if (!status) {
      for (uint32_t weight = 0; weight < _library_program.weight_count; ++weight)
        if (bound->copies[k][weight]) {
          int32_t last = CALL(free, bound->copies[k][weight]);
          if (!status) status = last;
        }
      status = leave(previous, status);
    }
    free(bound->copies[k]);
    if (!first) first = status;
  }
  if (bound->next) bound->next->previous = bound->previous;
  if (bound->previous) bound->previous->next = bound->next;
  else bounds = bound->next;
  pthread_mutex_unlock(&loading);
  free(bound->copies);
  free(bound->arrays);
  free(bound);
  return first;
}

#if ARRAYS_ON_DEVICE
int32_t _library_synchronize(void *stream) {
  struct device *device;
  void *previous;
  TRY(enter(&device, &previous));
  int32_t status = CALL(wait, stream);
  return leave(previous, status ? status : tell_failure(device));
}
#endif

int32_t _library_release(void) {
  int32_t first = STATUS_OK;
  error_text[0] = 0;
  pthread_mutex_lock(&loading);
  for (int k = 0; devices && k < device_count; ++k) {
    void *previous;
    if (!devices[k].is_loaded) continue;
    int32_t status = make_current(&devices[k], k, &previous);
    if (!status) {
      status = CALL(synchronize);
      int32_t last = unload(&devices[k]);
      status = leave(previous, status ? status : last);
    }
    if (!first) first = status;
  }
  pthread_mutex_unlock(&loading);
  return first;
}

const char *_library_error(void) { return error_text; }

const char *_library_arch(void) {
  struct device *device;
  void *previous;
  if (enter(&device, &previous)) return NULL;
  return leave(previous, STATUS_OK) ? NULL : device->plan->arch;
}
