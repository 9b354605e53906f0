// Functions that are not supported. They are exported under all their names, because programs that link them could not be
// loaded otherwise. cuGetProcAddress does not return them, so clients that look functions up notice at once.
#include "driver/call.hpp"

namespace emulated::driver {
namespace {

constexpr const char* references =
    "there are no texture and surface references: use a texture or surface object";
constexpr const char* processes = "the emulated device shares no pools with other processes";
constexpr const char* words = "the emulated device has no operations of streams on words of memory";
constexpr const char* counts = "contexts have no usage count: use cuCtxPushCurrent";
constexpr const char* profiles = "there is nothing to configure";

CUresult refuse_function(const char* name, const char* why) {
    return refuse(CUDA_ERROR_NOT_SUPPORTED, "{}: {}", name, why);
}

}  // namespace

/// Declared without parameters because it reads none.
#define EMULATED_REFUSED(symbol, why)                         \
    EMULATED_EXPORT CUresult refused_##symbol() asm(#symbol); \
    CUresult refused_##symbol() { return guarded<&initialised, &refuse_function>(#symbol, why); }

EMULATED_REFUSED(cuModuleGetSurfRef, references)
EMULATED_REFUSED(cuModuleGetTexRef, references)
EMULATED_REFUSED(cuParamSetTexRef, references)
EMULATED_REFUSED(cuSurfRefGetArray, references)
EMULATED_REFUSED(cuSurfRefSetArray, references)
EMULATED_REFUSED(cuTexRefCreate, references)
EMULATED_REFUSED(cuTexRefDestroy, references)
EMULATED_REFUSED(cuTexRefGetAddress, references)
EMULATED_REFUSED(cuTexRefGetAddress_v2, references)
EMULATED_REFUSED(cuTexRefGetAddressMode, references)
EMULATED_REFUSED(cuTexRefGetArray, references)
EMULATED_REFUSED(cuTexRefGetBorderColor, references)
EMULATED_REFUSED(cuTexRefGetFilterMode, references)
EMULATED_REFUSED(cuTexRefGetFlags, references)
EMULATED_REFUSED(cuTexRefGetFormat, references)
EMULATED_REFUSED(cuTexRefGetMaxAnisotropy, references)
EMULATED_REFUSED(cuTexRefGetMipmapFilterMode, references)
EMULATED_REFUSED(cuTexRefGetMipmapLevelBias, references)
EMULATED_REFUSED(cuTexRefGetMipmapLevelClamp, references)
EMULATED_REFUSED(cuTexRefGetMipmappedArray, references)
EMULATED_REFUSED(cuTexRefSetAddress, references)
EMULATED_REFUSED(cuTexRefSetAddress_v2, references)
EMULATED_REFUSED(cuTexRefSetAddress2D, references)
EMULATED_REFUSED(cuTexRefSetAddress2D_v2, references)
EMULATED_REFUSED(cuTexRefSetAddress2D_v3, references)
EMULATED_REFUSED(cuTexRefSetAddressMode, references)
EMULATED_REFUSED(cuTexRefSetArray, references)
EMULATED_REFUSED(cuTexRefSetBorderColor, references)
EMULATED_REFUSED(cuTexRefSetFilterMode, references)
EMULATED_REFUSED(cuTexRefSetFlags, references)
EMULATED_REFUSED(cuTexRefSetFormat, references)
EMULATED_REFUSED(cuTexRefSetMaxAnisotropy, references)
EMULATED_REFUSED(cuTexRefSetMipmapFilterMode, references)
EMULATED_REFUSED(cuTexRefSetMipmapLevelBias, references)
EMULATED_REFUSED(cuTexRefSetMipmapLevelClamp, references)
EMULATED_REFUSED(cuTexRefSetMipmappedArray, references)

EMULATED_REFUSED(cuMemPoolExportPointer, processes)
EMULATED_REFUSED(cuMemPoolExportToShareableHandle, processes)
EMULATED_REFUSED(cuMemPoolImportFromShareableHandle, processes)
EMULATED_REFUSED(cuMemPoolImportPointer, processes)

EMULATED_REFUSED(cuStreamBatchMemOp, words)
EMULATED_REFUSED(cuStreamBatchMemOp_v2, words)
EMULATED_REFUSED(cuStreamWaitValue32, words)
EMULATED_REFUSED(cuStreamWaitValue32_v2, words)
EMULATED_REFUSED(cuStreamWaitValue64, words)
EMULATED_REFUSED(cuStreamWaitValue64_v2, words)
EMULATED_REFUSED(cuStreamWriteValue32, words)
EMULATED_REFUSED(cuStreamWriteValue32_v2, words)
EMULATED_REFUSED(cuStreamWriteValue64, words)
EMULATED_REFUSED(cuStreamWriteValue64_v2, words)

EMULATED_REFUSED(cuCtxAttach, counts)
EMULATED_REFUSED(cuProfilerInitialize, profiles)

}  // namespace emulated::driver
