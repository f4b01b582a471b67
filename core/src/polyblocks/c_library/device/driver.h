/* The vendor's driver: opened at the first call, its functions found by name.
 *
 * Included by vendor.h, which is the target's. Before, that names the driver (DRIVER, INSTALL,
 * VISIBLE: for messages; SONAMES: files that it may be in), its functions (FUNCTIONS, and
 * STREAM_FUNCTIONS for arrays that are on the device), and some of its numbers. Behind, it has
 * what no two vendors do alike:
 *
 *   int current_device(int *device)                   the device that is current to the thread
 *   int device_handle(int device, void **handle)      what `activate` takes, made once
 *   int activate(void *handle, void **previous)       make it current to the thread
 *   int restore(void *previous)
 *   int describe_device(int device, char *text, size_t bytes)
 *   int rank_code(int device, const char *arch, const char *form, int *rank)
 *                                                     the less the better, negative: does not run
 *   int load_code(const char *code, void **module, char *log, size_t bytes)
 *   int prepare_function(void *function, unsigned shared_bytes)
 *   int encode_map(const struct tensor_map *map, uint64_t address, uint64_t *words)
 *                                                     the MAP_WORDS words of a tensor map
 *
 * Functions of drivers return 0, or an error. An address on a device is a number of 64 bits.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "program.h"

#define DECLARE(field, symbol, ...) int (*field)(__VA_ARGS__);
#define NAME(field, symbol, ...) const char *field;
#define SYMBOL(field, symbol, ...) .field = symbol,
#if !ARRAYS_ON_DEVICE
#undef STREAM_FUNCTIONS
#define STREAM_FUNCTIONS(F)
#endif

static struct { FUNCTIONS(DECLARE) STREAM_FUNCTIONS(DECLARE) } api;
static const struct { FUNCTIONS(NAME) STREAM_FUNCTIONS(NAME) } symbols = {
  FUNCTIONS(SYMBOL) STREAM_FUNCTIONS(SYMBOL)
};
#define PROGRAM _library_program.name

/* What a status of the driver's means. */
static int32_t driver_failed(const char *function, int status, const char *more) {
  const char *name = NULL, *text = NULL;
  if (api.error_name(status, &name) || !name) name = "unknown";
  if (api.error_text(status, &text) || !text) text = "unknown error";
  int32_t ours = status == OUT_OF_MEMORY ? STATUS_NO_MEMORY : STATUS_DRIVER_ERROR;
  return fail(ours, "%s: %s failed: %s (%s, %d)%s", PROGRAM, function, text, name, status, more);
}

/* Call a function of the driver: 0, or our status. */
#define CALL(field, ...) driver_said(symbols.field, api.field(__VA_ARGS__))

static int32_t driver_said(const char *function, int status) {
  return status ? driver_failed(function, status, "") : STATUS_OK;
}

static void *driver;
static int device_count;
static pthread_mutex_t connecting = PTHREAD_MUTEX_INITIALIZER;

static int32_t open_driver(void) {
  static const char *const sonames[] = {SONAMES};
  void *found = NULL;
  char why[256] = "";
  for (size_t k = 0; !found && k < sizeof sonames / sizeof *sonames; ++k) {
    found = dlopen(sonames[k], RTLD_NOW | RTLD_LOCAL);
    const char *said = found || why[0] ? NULL : dlerror();
    if (said) snprintf(why, sizeof why, "%s", said);
  }
  if (!found)
    return fail(STATUS_NO_DEVICE, "%s: there is no " DRIVER ": %s; " INSTALL, PROGRAM, why);
#define FIND(field, symbol, ...) \
  *(void **)&api.field = dlsym(found, symbol); \
  if (!api.field) { \
    dlclose(found); \
    return fail(STATUS_NO_DEVICE, "%s: the " DRIVER " has no function %s; install a newer one", \
                PROGRAM, symbol); \
  }
  FUNCTIONS(FIND)
  STREAM_FUNCTIONS(FIND)
  int count = 0, status = api.initialize(0);
  if (!status) status = api.count_devices(&count);
  if (status || !count) {
    const char *name = NULL;
    if (status && (api.error_name(status, &name) || !name)) name = "unknown";
    fail(STATUS_NO_DEVICE, "%s: the " DRIVER " finds no device (%s); see " VISIBLE, PROGRAM,
         status ? name : "none is visible");
    dlclose(found);
    return STATUS_NO_DEVICE;
  }
  device_count = count;
  __atomic_store_n(&driver, found, __ATOMIC_RELEASE);
  return STATUS_OK;
}

/* Open the driver unless that is done; after a failure the next call tries again. */
static int32_t connect_driver(void) {
  if (__atomic_load_n(&driver, __ATOMIC_ACQUIRE)) return STATUS_OK;
  pthread_mutex_lock(&connecting);
  int32_t status = driver ? STATUS_OK : open_driver();
  pthread_mutex_unlock(&connecting);
  return status;
}
