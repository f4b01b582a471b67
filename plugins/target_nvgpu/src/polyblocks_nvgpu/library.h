/* NVIDIA's driver as libraries for C use it; the names are those that cuda.h makes of its own.
 *
 * Source: CUDA Driver API, and the header cuda.h for versions of functions and numbers.
 */
#define DRIVER "CUDA driver"
#define SONAMES "libcuda.so.1"
#define INSTALL "install NVIDIA's driver on a machine with a GPU"
#define VISIBLE "CUDA_VISIBLE_DEVICES and nvidia-smi"

#define OUT_OF_MEMORY 2
#define NOT_FOUND 500
/* CU_STREAM_NON_BLOCKING, CU_MEMHOSTALLOC_PORTABLE */
#define STREAM_FLAGS 1
#define HOST_FLAGS 1

#define FUNCTIONS(F) \
  F(initialize, "cuInit", unsigned) \
  F(count_devices, "cuDeviceGetCount", int *) \
  F(error_name, "cuGetErrorName", int, const char **) \
  F(error_text, "cuGetErrorString", int, const char **) \
  F(get_device, "cuDeviceGet", int *, int) \
  F(device_name, "cuDeviceGetName", char *, int, int) \
  F(device_attribute, "cuDeviceGetAttribute", int *, int, int) \
  F(retain_context, "cuDevicePrimaryCtxRetain", void **, int) \
  F(get_context, "cuCtxGetCurrent", void **) \
  F(set_context, "cuCtxSetCurrent", void *) \
  F(context_device, "cuCtxGetDevice", int *) \
  F(synchronize, "cuCtxSynchronize", void) \
  F(load_module, "cuModuleLoadDataEx", void **, const void *, unsigned, int *, void **) \
  F(unload_module, "cuModuleUnload", void *) \
  F(find_function, "cuModuleGetFunction", void **, void *, const char *) \
  F(set_function_attribute, "cuFuncSetAttribute", void *, int, int) \
  F(launch, "cuLaunchKernel", void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
    unsigned, void *, void **, void **) \
  F(allocate, "cuMemAlloc_v2", uint64_t *, size_t) \
  F(free, "cuMemFree_v2", uint64_t) \
  F(allocate_host, "cuMemHostAlloc", void **, size_t, unsigned) \
  F(free_host, "cuMemFreeHost", void *) \
  F(copy_in, "cuMemcpyHtoDAsync_v2", uint64_t, const void *, size_t, void *) \
  F(copy_out, "cuMemcpyDtoHAsync_v2", void *, uint64_t, size_t, void *) \
  F(create_stream, "cuStreamCreate", void **, unsigned) \
  F(destroy_stream, "cuStreamDestroy_v2", void *) \
  F(wait, "cuStreamSynchronize", void *)

#define STREAM_FUNCTIONS(F) \
  F(allocate_on_stream, "cuMemAllocAsync", uint64_t *, size_t, void *) \
  F(free_on_stream, "cuMemFreeAsync", uint64_t, void *)

#include "driver.h"

/* Primary contexts, as PyTorch and the CUDA runtime use them; a thread without one has device 0. */
static int current_device(int *device) {
  void *context = NULL;
  *device = 0;
  int status = api.get_context(&context);
  return status || !context ? status : api.context_device(device);
}

static int device_handle(int device, void **handle) {
  int which;
  int status = api.get_device(&which, device);
  return status ? status : api.retain_context(handle, which);
}

static int activate(void *handle, void **previous) {
  int status = api.get_context(previous);
  return status || *previous == handle ? status : api.set_context(handle);
}

static int restore(void *previous) {
  void *now = NULL;
  int status = api.get_context(&now);
  return status || now == previous ? status : api.set_context(previous);
}

static int capability(int device, int *major, int *minor) {
  int which;
  int status = api.get_device(&which, device);
  /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR */
  if (!status) status = api.device_attribute(major, 75, which);
  return status ? status : api.device_attribute(minor, 76, which);
}

static int describe_device(int device, char *text, size_t bytes) {
  int which, major = 0, minor = 0;
  char name[128] = "";
  int status = api.get_device(&which, device);
  if (!status) status = api.device_name(name, sizeof name, which);
  if (!status) status = capability(device, &major, &minor);
  snprintf(text, bytes, "%s (sm_%d%d)", name, major, minor);
  return status;
}

/* As CudaDriver.rank in driver.py: machine code for this very chip, then for an earlier one of its
 * generation, then PTX. Code for sm_90a runs on 9.0 alone, and for sm_100f on its generation.
 */
static int rank_code(int device, const char *arch, const char *form, int *rank) {
  int major, minor;
  *rank = -1;
  int status = capability(device, &major, &minor);
  if (status || strncmp(arch, "sm_", 3)) return status;
  char *suffix;
  int wanted = (int)strtol(arch + 3, &suffix, 10);
  int distance = 10 * major + minor - wanted, same = major == wanted / 10;
  if (distance < 0 || (*suffix == 'a' && distance) || (*suffix == 'f' && !same)) return 0;
  if (!strcmp(form, "cubin")) *rank = same ? distance : -1;
  else if (!strcmp(form, "ptx")) *rank = 100 + distance;
  return 0;
}

static int load_code(const char *code, void **module, char *log, size_t bytes) {
  /* CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES */
  int options[] = {5, 6};
  void *values[] = {log, (void *)(uintptr_t)bytes};
  return api.load_module(module, code, 2, options, values);
}

static int prepare_function(void *function, unsigned shared_bytes) {
  /* More than 48 KiB must be asked for: CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES. */
  return shared_bytes ? api.set_function_attribute(function, 8, (int)shared_bytes) : 0;
}

/* As tensor_maps.py: numbers without a sign, no interleaving, a swizzle of 128 bytes, L2 loads 256
 * bytes at once, zeros outside of the array. A tensor map lies on 64 bytes.
 */
static int encode_map(const struct tensor_map *map, uint64_t address, uint64_t *words) {
  int (*of_boxes)(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *,
                  const uint32_t *, const uint32_t *, int, int, int, int);
  int (*of_pixels)(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *,
                   const int32_t *, const int32_t *, uint32_t, uint32_t, const uint32_t *, int, int,
                   int, int);
  _Alignas(64) uint64_t made[MAP_WORDS];
  uint32_t steps[MAP_DIMENSIONS];
  void *array = (void *)(uintptr_t)address;
  for (int k = 0; k < MAP_DIMENSIONS; ++k) steps[k] = 1;
  int type = map->element_bytes == 1 ? 0 : map->element_bytes == 2 ? 1 : 2;
  int status;
  if (map->is_im2col) {
    *(void **)&of_pixels = dlsym(driver, "cuTensorMapEncodeIm2col");
    if (!of_pixels) return NOT_FOUND; /* CUDA 12 or later has it */
    for (uint32_t k = 0; k + 2 < map->rank; ++k) steps[k + 1] = map->steps[k];
    status = of_pixels(made, type, map->rank, array, map->extents, map->strides, map->lower,
                       map->upper, map->box[0], map->box[1], steps, 0, 3, 3, 0);
  } else {
    *(void **)&of_boxes = dlsym(driver, "cuTensorMapEncodeTiled");
    if (!of_boxes) return NOT_FOUND;
    status = of_boxes(made, type, map->rank, array, map->extents, map->strides, map->box, steps, 0,
                      3, 3, 0);
  }
  memcpy(words, made, sizeof made);
  return status;
}
