/* AMD's HIP runtime as libraries for C use it: that of ROCm 6 and later.
 *
 * Source: HIP runtime API reference, and hip_runtime_api.h for versions of functions and numbers.
 */
#define DRIVER "HIP runtime"
#define SONAMES "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"
#define INSTALL "install ROCm on a machine with a GPU"
#define VISIBLE "HIP_VISIBLE_DEVICES and rocminfo"

#define OUT_OF_MEMORY 2
#define NOT_FOUND 500
/* hipStreamNonBlocking, hipHostMallocPortable */
#define STREAM_FLAGS 1
#define HOST_FLAGS 1

#define FUNCTIONS(F) \
  F(initialize, "hipInit", unsigned) \
  F(count_devices, "hipGetDeviceCount", int *) \
  F(error_name, "hipDrvGetErrorName", int, const char **) \
  F(error_text, "hipDrvGetErrorString", int, const char **) \
  F(get_device, "hipGetDevice", int *) \
  F(set_device, "hipSetDevice", int) \
  F(device_properties, "hipGetDevicePropertiesR0600", void *, int) \
  F(synchronize, "hipDeviceSynchronize", void) \
  F(load_module, "hipModuleLoadData", void **, const void *) \
  F(unload_module, "hipModuleUnload", void *) \
  F(find_function, "hipModuleGetFunction", void **, void *, const char *) \
  F(launch, "hipModuleLaunchKernel", void *, unsigned, unsigned, unsigned, unsigned, unsigned, \
    unsigned, unsigned, void *, void **, void **) \
  F(allocate, "hipMalloc", uint64_t *, size_t) \
  F(free, "hipFree", uint64_t) \
  F(allocate_host, "hipHostMalloc", void **, size_t, unsigned) \
  F(free_host, "hipHostFree", void *) \
  F(copy_in, "hipMemcpyHtoDAsync", uint64_t, const void *, size_t, void *) \
  F(copy_out, "hipMemcpyDtoHAsync", void *, uint64_t, size_t, void *) \
  F(create_stream, "hipStreamCreateWithFlags", void **, unsigned) \
  F(destroy_stream, "hipStreamDestroy", void *) \
  F(wait, "hipStreamSynchronize", void *)

#define STREAM_FUNCTIONS(F) \
  F(allocate_on_stream, "hipMallocAsync", uint64_t *, size_t, void *) \
  F(free_on_stream, "hipFreeAsync", uint64_t, void *)

#include "driver.h"

/* hipDeviceProp_tR0600 up to what is read of it, and room for what later versions add. */
struct device_properties {
  char name[256];
  char others[904];
  char arch[256]; /* gcnArchName: gfx90a:sramecc+:xnack- */
  char room[4096];
};

static int current_device(int *device) { return api.get_device(device); }

static int device_handle(int device, void **handle) {
  *handle = (void *)(intptr_t)device;
  return 0;
}

static int activate(void *handle, void **previous) {
  int device = 0, wanted = (int)(intptr_t)handle;
  int status = api.get_device(&device);
  *previous = (void *)(intptr_t)device;
  return status || device == wanted ? status : api.set_device(wanted);
}

static int restore(void *previous) {
  void *now;
  return activate(previous, &now);
}

static int properties_of(int device, struct device_properties *properties) {
  memset(properties, 0, sizeof *properties);
  int status = api.device_properties(properties, device);
  properties->name[255] = properties->arch[255] = 0;
  properties->arch[strcspn(properties->arch, ":")] = 0;
  return status;
}

static int describe_device(int device, char *text, size_t bytes) {
  struct device_properties properties;
  int status = properties_of(device, &properties);
  snprintf(text, bytes, "%s (%s)", properties.name, properties.arch);
  return status;
}

/* As HipDriver.rank in driver.py: code runs on the architecture that it is for, and no other. */
static int rank_code(int device, const char *arch, const char *form, int *rank) {
  struct device_properties properties;
  int status = properties_of(device, &properties);
  *rank = strcmp(form, "hsaco") || strcmp(arch, properties.arch) ? -1 : 0;
  return status;
}

static int load_code(const char *code, void **module, char *log, size_t bytes) {
  (void)log, (void)bytes;
  return api.load_module(module, code);
}

static int prepare_function(void *function, unsigned shared_bytes) {
  (void)function, (void)shared_bytes;
  return 0;
}

static int encode_map(const struct tensor_map *map, uint64_t address, uint64_t *words) {
  (void)map, (void)address, (void)words;
  return NOT_FOUND;
}
