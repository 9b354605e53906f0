/* A libcuda.so.1 between Bascule and the emulated device, which adds what only GPU drivers have: device errors,
 * machine code that loads, and checks of its arguments. Programs call its own functions through ctypes.
 *
 * WRAPPED_CUBIN   the result for machine code: a CUresult, or the path of a PTX file that is loaded instead
 * WRAPPED_PTX     the same for PTX
 * WRAPPED_ARCHS   compute capabilities of the devices: "80,103"
 * WRAPPED_LOG     what each load writes to the error log, if it was given one
 * WRAPPED_SAYS    each load is reported on standard output: "cubin 0"
 * */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>
#undef cuGetProcAddress

typedef CUresult (*Find)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

static int lost_with = 0;
static int wrong_attributes = 0;

/* From now on launches and the calls of EACH_WRAPPED return this code, as if the context were lost. 0 ends that. */
void wrapped_lose(int code) { lost_with = code; }
/* Returns the number of launches whose attributes are null although their count is not 0, or the other way round. */
int wrapped_wrong_attributes(void) { return wrong_attributes; }

#define EACH_WRAPPED(F)                               \
    F(cuStreamSynchronize, (CUstream s), (s))         \
    F(cuCtxSynchronize, (void), ())                   \
    F(cuStreamQuery, (CUstream s), (s))               \
    F(cuEventQuery, (CUevent e), (e))                 \
    F(cuEventRecord, (CUevent e, CUstream s), (e, s)) \
    F(cuMemGetInfo, (size_t * a, size_t * b), (a, b))

#define DEFINE(name, parameters, arguments)                                  \
    static CUresult(*real_##name) parameters;                                \
    static CUresult wrapped_##name parameters {                              \
        return lost_with != 0 ? (CUresult)lost_with : real_##name arguments; \
    }
#undef cuMemGetInfo
EACH_WRAPPED(DEFINE)

static CUresult (*real_launch)(const CUlaunchConfig*, CUfunction, void**, void**);
static CUresult wrapped_launch(const CUlaunchConfig* config, CUfunction f, void** parameters, void** extra) {
    if ((config->attrs == NULL) != (config->numAttrs == 0)) ++wrong_attributes;
    return lost_with != 0 ? (CUresult)lost_with : real_launch(config, f, parameters, extra);
}

static CUjit_option* options_of_load;
static void** values_of_load;
static CUjit_option first_option;
static void* first_value;

/* Returns whether the last load's options have kept their places and values: lazy drivers read them again. */
int wrapped_options_live(void) {
    return options_of_load[0] == first_option && values_of_load[0] == first_value;
}

static CUresult (*real_load)(CUlibrary*, const void*, CUjit_option*, void**, unsigned, CUlibraryOption*,
                             void**, unsigned);

static CUresult load_file(const char* path, CUlibrary* library, CUjit_option* o, void** v, unsigned n) {
    static char text[1 << 20];
    FILE* file = fopen(path, "r");
    if (file == NULL) return CUDA_ERROR_FILE_NOT_FOUND;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return real_load(library, text, o, v, n, NULL, NULL, 0);
}

static CUresult wrapped_load(CUlibrary* library, const void* code, CUjit_option* o, void** v, unsigned n,
                             CUlibraryOption* lo, void** lv, unsigned ln) {
    int is_cubin = memcmp(code, "\177ELF", 4) == 0;
    const char* wish = getenv(is_cubin ? "WRAPPED_CUBIN" : "WRAPPED_PTX");
    CUresult result;
    options_of_load = o;
    values_of_load = v;
    first_option = o[0];
    first_value = v[0];
    if (wish == NULL)
        result = real_load(library, code, o, v, n, lo, lv, ln);
    else if (wish[0] == '/')
        result = load_file(wish, library, o, v, n);
    else
        result = (CUresult)atoi(wish);
    if (getenv("WRAPPED_LOG") != NULL && o[0] == CU_JIT_ERROR_LOG_BUFFER) strcpy(v[0], getenv("WRAPPED_LOG"));
    if (getenv("WRAPPED_SAYS") != NULL) {
        printf("%s %d\n", is_cubin ? "cubin" : "ptx", (int)result);
        fflush(stdout);
    }
    return result;
}

static CUresult (*real_attribute)(int*, CUdevice_attribute, CUdevice);
static CUresult wrapped_attribute(int* value, CUdevice_attribute which, CUdevice device) {
    const char* archs = getenv("WRAPPED_ARCHS");
    int major = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
    CUdevice at;
    if (archs == NULL || (!major && which != CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR))
        return real_attribute(value, which, device);
    for (at = 0; at < device && strchr(archs, ',') != NULL; ++at) archs = strchr(archs, ',') + 1;
    *value = major ? atoi(archs) / 10 : atoi(archs) % 10;
    return CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char* name, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* result) {
    static Find find;
    CUresult code;
    if (find == NULL) {
        find = (Find)dlsym(dlopen(getenv("WRAPPED_DRIVER"), RTLD_NOW), "cuGetProcAddress_v2");
        if (find == NULL) abort();
    }
    code = find(name, function, version, flags, result);
    if (code != CUDA_SUCCESS || *function == NULL) return code;
#define WRAP(wanted, real, wrapper)  \
    if (strcmp(name, wanted) == 0) { \
        *(void**)&real = *function;  \
        *function = (void*)&wrapper; \
    }
#define WRAP_EACH(name_, parameters, arguments) WRAP(#name_, real_##name_, wrapped_##name_)
    EACH_WRAPPED(WRAP_EACH)
    WRAP("cuLaunchKernelEx", real_launch, wrapped_launch)
    WRAP("cuDeviceGetAttribute", real_attribute, wrapped_attribute)
    WRAP("cuLibraryLoadData", real_load, wrapped_load)
    return code;
}
