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
constexpr const char* wide_maps = "tensor maps of wide columns need compute capability 10.0";
constexpr const char* profiles = "there is nothing to configure";

void refuse_function(const char* name, const char* why) {
    return refuse(CUDA_ERROR_NOT_SUPPORTED, "{}: {}", name, why);
}

}  // namespace

/// Declared without parameters because it reads none.
#define REFUSED(symbol, why)                                  \
    EMULATED_EXPORT CUresult refused_##symbol() asm(#symbol); \
    CUresult refused_##symbol() { return guarded<&initialised, &refuse_function>(#symbol, why); }

// clang-format off
REFUSED(cuModuleGetSurfRef, references) REFUSED(cuModuleGetTexRef, references) REFUSED(cuParamSetTexRef, references)
REFUSED(cuSurfRefGetArray, references) REFUSED(cuSurfRefSetArray, references) REFUSED(cuTexRefCreate, references)
REFUSED(cuTexRefDestroy, references) REFUSED(cuTexRefGetAddress, references)
REFUSED(cuTexRefGetAddress_v2, references) REFUSED(cuTexRefGetAddressMode, references)
REFUSED(cuTexRefGetArray, references) REFUSED(cuTexRefGetBorderColor, references)
REFUSED(cuTexRefGetFilterMode, references) REFUSED(cuTexRefGetFlags, references)
REFUSED(cuTexRefGetFormat, references) REFUSED(cuTexRefGetMaxAnisotropy, references)
REFUSED(cuTexRefGetMipmapFilterMode, references) REFUSED(cuTexRefGetMipmapLevelBias, references)
REFUSED(cuTexRefGetMipmapLevelClamp, references) REFUSED(cuTexRefGetMipmappedArray, references)
REFUSED(cuTexRefSetAddress, references) REFUSED(cuTexRefSetAddress_v2, references)
REFUSED(cuTexRefSetAddress2D, references) REFUSED(cuTexRefSetAddress2D_v2, references)
REFUSED(cuTexRefSetAddress2D_v3, references) REFUSED(cuTexRefSetAddressMode, references)
REFUSED(cuTexRefSetArray, references) REFUSED(cuTexRefSetBorderColor, references)
REFUSED(cuTexRefSetFilterMode, references) REFUSED(cuTexRefSetFlags, references)
REFUSED(cuTexRefSetFormat, references) REFUSED(cuTexRefSetMaxAnisotropy, references)
REFUSED(cuTexRefSetMipmapFilterMode, references) REFUSED(cuTexRefSetMipmapLevelBias, references)
REFUSED(cuTexRefSetMipmapLevelClamp, references) REFUSED(cuTexRefSetMipmappedArray, references)
REFUSED(cuMemPoolExportPointer, processes) REFUSED(cuMemPoolExportToShareableHandle, processes)
REFUSED(cuMemPoolImportFromShareableHandle, processes) REFUSED(cuMemPoolImportPointer, processes)
REFUSED(cuStreamBatchMemOp, words) REFUSED(cuStreamBatchMemOp_v2, words) REFUSED(cuStreamWaitValue32, words)
REFUSED(cuStreamWaitValue32_v2, words) REFUSED(cuStreamWaitValue64, words) REFUSED(cuStreamWaitValue64_v2, words)
REFUSED(cuStreamWriteValue32, words) REFUSED(cuStreamWriteValue32_v2, words) REFUSED(cuStreamWriteValue64, words)
REFUSED(cuStreamWriteValue64_v2, words)
REFUSED(cuCtxAttach, counts)
REFUSED(cuTensorMapEncodeIm2colWide, wide_maps)
REFUSED(cuProfilerInitialize, profiles)
// clang-format on

}  // namespace emulated::driver
