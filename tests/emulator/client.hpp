// A client of the emulated device that uses only dlopen, cuGetProcAddress and handles, and links nothing of it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <cuda.h>
#include <cudaTypedefs.h>

#include "emulated_abi.h"

namespace client {

// name, version of the typedef in <cudaTypedefs.h>
#define CLIENT_FUNCTIONS(FUNCTION)                              \
    FUNCTION(cuInit, 2000)                                      \
    FUNCTION(cuDriverGetVersion, 2020)                          \
    FUNCTION(cuGetErrorName, 6000)                              \
    FUNCTION(cuGetErrorString, 6000)                            \
    FUNCTION(cuDeviceGet, 2000)                                 \
    FUNCTION(cuDeviceGetCount, 2000)                            \
    FUNCTION(cuDeviceGetName, 2000)                             \
    FUNCTION(cuDeviceGetAttribute, 2000)                        \
    FUNCTION(cuDevicePrimaryCtxRetain, 7000)                    \
    FUNCTION(cuDevicePrimaryCtxRelease, 11000)                  \
    FUNCTION(cuDevicePrimaryCtxReset, 11000)                    \
    FUNCTION(cuCtxGetCurrent, 4000)                             \
    FUNCTION(cuCtxSetCurrent, 4000)                             \
    FUNCTION(cuCtxPushCurrent, 4000)                            \
    FUNCTION(cuCtxPopCurrent, 4000)                             \
    FUNCTION(cuCtxGetDevice, 2000)                              \
    FUNCTION(cuCtxSynchronize, 2000)                            \
    FUNCTION(cuCtxCreate, 12050)                                \
    FUNCTION(cuCtxDestroy, 4000)                                \
    FUNCTION(cuLibraryLoadData, 12000)                          \
    FUNCTION(cuLibraryUnload, 12000)                            \
    FUNCTION(cuLibraryGetKernel, 12000)                         \
    FUNCTION(cuLibraryGetGlobal, 12000)                         \
    FUNCTION(cuKernelGetFunction, 12000)                        \
    FUNCTION(cuKernelGetAttribute, 12000)                       \
    FUNCTION(cuKernelSetAttribute, 12000)                       \
    FUNCTION(cuKernelGetParamInfo, 12040)                       \
    FUNCTION(cuModuleLoadDataEx, 2010)                          \
    FUNCTION(cuModuleGetFunction, 2000)                         \
    FUNCTION(cuModuleUnload, 2000)                              \
    FUNCTION(cuLaunchKernel, 4000)                              \
    FUNCTION(cuLaunchKernelEx, 11060)                           \
    FUNCTION(cuLaunchHostFunc, 10000)                           \
    FUNCTION(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050) \
    FUNCTION(cuOccupancyMaxActiveClusters, 11070)               \
    FUNCTION(cuOccupancyMaxPotentialBlockSize, 6050)            \
    FUNCTION(cuOccupancyMaxPotentialClusterSize, 11070)         \
    FUNCTION(cuMemAlloc, 3020)                                  \
    FUNCTION(cuMemFree, 3020)                                   \
    FUNCTION(cuMemGetInfo, 3020)                                \
    FUNCTION(cuMemHostAlloc, 2020)                              \
    FUNCTION(cuMemFreeHost, 2000)                               \
    FUNCTION(cuMemAllocPitch, 3020)                             \
    FUNCTION(cuMemHostRegister, 6050)                           \
    FUNCTION(cuMemHostUnregister, 4000)                         \
    FUNCTION(cuMemAllocManaged, 6000)                           \
    FUNCTION(cuMemGetAddressRange, 3020)                        \
    FUNCTION(cuMemcpy, 4000)                                    \
    FUNCTION(cuMemcpyHtoD, 3020)                                \
    FUNCTION(cuMemcpyDtoH, 3020)                                \
    FUNCTION(cuMemcpyHtoDAsync, 3020)                           \
    FUNCTION(cuMemcpyDtoHAsync, 3020)                           \
    FUNCTION(cuMemcpyDtoDAsync, 3020)                           \
    FUNCTION(cuMemsetD8, 3020)                                  \
    FUNCTION(cuMemsetD8Async, 3020)                             \
    FUNCTION(cuMemsetD16Async, 3020)                            \
    FUNCTION(cuMemsetD32Async, 3020)                            \
    FUNCTION(cuPointerGetAttribute, 4000)                       \
    FUNCTION(cuPointerGetAttributes, 7000)                      \
    FUNCTION(cuStreamCreate, 2000)                              \
    FUNCTION(cuStreamCreateWithPriority, 5050)                  \
    FUNCTION(cuStreamDestroy, 4000)                             \
    FUNCTION(cuStreamSynchronize, 2000)                         \
    FUNCTION(cuStreamQuery, 2000)                               \
    FUNCTION(cuStreamWaitEvent, 3020)                           \
    FUNCTION(cuStreamGetCtx, 9020)                              \
    FUNCTION(cuStreamIsCapturing, 10000)                        \
    FUNCTION(cuStreamBeginCapture, 10010)                       \
    FUNCTION(cuStreamEndCapture, 10000)                         \
    FUNCTION(cuStreamGetCaptureInfo, 12030)                     \
    FUNCTION(cuThreadExchangeStreamCaptureMode, 10010)          \
    FUNCTION(cuGraphCreate, 10000)                              \
    FUNCTION(cuGraphDestroy, 10000)                             \
    FUNCTION(cuGraphGetNodes, 10000)                            \
    FUNCTION(cuGraphGetRootNodes, 10000)                        \
    FUNCTION(cuGraphNodeGetDependencies, 12030)                 \
    FUNCTION(cuGraphNodeGetType, 10000)                         \
    FUNCTION(cuGraphInstantiateWithFlags, 11040)                \
    FUNCTION(cuGraphInstantiateWithParams, 12000)               \
    FUNCTION(cuGraphExecUpdate, 12000)                          \
    FUNCTION(cuGraphExecDestroy, 10000)                         \
    FUNCTION(cuGraphUpload, 11010)                              \
    FUNCTION(cuGraphLaunch, 10000)                              \
    FUNCTION(cuUserObjectCreate, 11030)                         \
    FUNCTION(cuUserObjectRetain, 11030)                         \
    FUNCTION(cuUserObjectRelease, 11030)                        \
    FUNCTION(cuGraphRetainUserObject, 11030)                    \
    FUNCTION(cuGraphReleaseUserObject, 11030)                   \
    FUNCTION(cuEventCreate, 2000)                               \
    FUNCTION(cuEventDestroy, 4000)                              \
    FUNCTION(cuEventRecord, 2000)                               \
    FUNCTION(cuEventQuery, 2000)                                \
    FUNCTION(cuEventSynchronize, 2000)                          \
    FUNCTION(cuEventElapsedTime, 2000)                          \
    FUNCTION(cuLinkCreate, 6050)                                \
    FUNCTION(cuLinkAddData, 6050)                               \
    FUNCTION(cuLinkComplete, 5050)                              \
    FUNCTION(cuLinkDestroy, 5050)                               \
    FUNCTION(cuDeviceCanAccessPeer, 4000)                       \
    FUNCTION(cuDeviceGetP2PAttribute, 8000)                     \
    FUNCTION(cuDevicePrimaryCtxGetState, 7000)                  \
    FUNCTION(cuCtxGetStreamPriorityRange, 5050)                 \
    FUNCTION(cuCtxEnablePeerAccess, 4000)                       \
    FUNCTION(cuCtxDisablePeerAccess, 4000)                      \
    FUNCTION(cuStreamAddCallback, 5000)                         \
    FUNCTION(cuStreamGetFlags, 5050)                            \
    FUNCTION(cuStreamGetId, 12000)                              \
    FUNCTION(cuStreamGetPriority, 5050)                         \
    FUNCTION(cuStreamGetDevice, 12080)                          \
    FUNCTION(cuEventRecordWithFlags, 11010)                     \
    FUNCTION(cuMemcpyAsync, 4000)                               \
    FUNCTION(cuMemcpyDtoD, 3020)                                \
    FUNCTION(cuMemcpyPeer, 4000)                                \
    FUNCTION(cuMemcpyPeerAsync, 4000)                           \
    FUNCTION(cuMemcpy2D, 3020)                                  \
    FUNCTION(cuMemcpy2DUnaligned, 3020)                         \
    FUNCTION(cuMemcpy3D, 3020)                                  \
    FUNCTION(cuMemcpy3DAsync, 3020)                             \
    FUNCTION(cuMemcpyHtoA, 3020)                                \
    FUNCTION(cuMemcpyHtoAAsync, 3020)                           \
    FUNCTION(cuMemcpyAtoH, 3020)                                \
    FUNCTION(cuMemcpyAtoHAsync, 3020)                           \
    FUNCTION(cuMemcpyDtoA, 3020)                                \
    FUNCTION(cuMemcpyAtoD, 3020)                                \
    FUNCTION(cuMemcpyAtoA, 3020)                                \
    FUNCTION(cuArrayCreate, 3020)                               \
    FUNCTION(cuArray3DCreate, 3020)                             \
    FUNCTION(cuArrayGetDescriptor, 3020)                        \
    FUNCTION(cuArray3DGetDescriptor, 3020)                      \
    FUNCTION(cuArrayDestroy, 2000)                              \
    FUNCTION(cuTexObjectCreate, 5000)                           \
    FUNCTION(cuTexObjectDestroy, 5000)                          \
    FUNCTION(cuTexObjectGetResourceDesc, 5000)                  \
    FUNCTION(cuTexObjectGetTextureDesc, 5000)                   \
    FUNCTION(cuTexObjectGetResourceViewDesc, 5000)              \
    FUNCTION(cuMipmappedArrayCreate, 5000)                      \
    FUNCTION(cuMipmappedArrayGetLevel, 5000)                    \
    FUNCTION(cuMipmappedArrayDestroy, 5000)                     \
    FUNCTION(cuSurfObjectCreate, 5000)                          \
    FUNCTION(cuSurfObjectDestroy, 5000)                         \
    FUNCTION(cuSurfObjectGetResourceDesc, 5000)                 \
    FUNCTION(cuMemcpy2DAsync, 3020)                             \
    FUNCTION(cuMemsetD16, 3020)                                 \
    FUNCTION(cuMemsetD32, 3020)                                 \
    FUNCTION(cuMemsetD2D8, 3020)                                \
    FUNCTION(cuMemsetD2D8Async, 3020)                           \
    FUNCTION(cuMemsetD2D16, 3020)                               \
    FUNCTION(cuMemsetD2D16Async, 3020)                          \
    FUNCTION(cuMemsetD2D32, 3020)                               \
    FUNCTION(cuMemsetD2D32Async, 3020)                          \
    FUNCTION(cuMemAllocHost, 3020)                              \
    FUNCTION(cuMemHostGetDevicePointer, 3020)                   \
    FUNCTION(cuMemAllocAsync, 11020)                            \
    FUNCTION(cuMemFreeAsync, 11020)                             \
    FUNCTION(cuMemAllocFromPoolAsync, 11020)                    \
    FUNCTION(cuDeviceGetDefaultMemPool, 11020)                  \
    FUNCTION(cuDeviceGetMemPool, 11020)                         \
    FUNCTION(cuDeviceSetMemPool, 11020)                         \
    FUNCTION(cuMemPoolCreate, 11020)                            \
    FUNCTION(cuMemPoolGetAccess, 11020)                         \
    FUNCTION(cuMemPoolSetAccess, 11020)                         \
    FUNCTION(cuMemGetMemPool, 13000)                            \
    FUNCTION(cuMemcpyBatchAsync, 13000)                         \
    FUNCTION(cuMemPrefetchBatchAsync, 13000)                    \
    FUNCTION(cuMemDiscardBatchAsync, 13000)                     \
    FUNCTION(cuMemGetDefaultMemPool, 13000)                     \
    FUNCTION(cuMemSetMemPool, 13000)                            \
    FUNCTION(cuLibraryGetModule, 12000)                         \
    FUNCTION(cuFuncSetBlockShape, 2000)                         \
    FUNCTION(cuFuncSetSharedSize, 2000)                         \
    FUNCTION(cuParamSetSize, 2000)                              \
    FUNCTION(cuParamSeti, 2000)                                 \
    FUNCTION(cuParamSetv, 2000)                                 \
    FUNCTION(cuLaunchGrid, 2000)                                \
    FUNCTION(cuOccupancyAvailableDynamicSMemPerBlock, 10020)    \
    FUNCTION(cuDeviceComputeCapability, 2000)                   \
    FUNCTION(cuMemcpy3DPeer, 4000)                              \
    FUNCTION(cuMemPoolDestroy, 11020)                           \
    FUNCTION(cuMemPoolTrimTo, 11020)                            \
    FUNCTION(cuMemPoolSetAttribute, 11020)                      \
    FUNCTION(cuMemPoolGetAttribute, 11020)                      \
    FUNCTION(cuMemPrefetchAsync, 12020)                         \
    FUNCTION(cuMemAdvise, 12020)                                \
    FUNCTION(cuMemRangeGetAttribute, 8000)                      \
    FUNCTION(cuMemRangeGetAttributes, 8000)                     \
    FUNCTION(cuStreamAttachMemAsync, 6000)                      \
    FUNCTION(cuGraphAddKernelNode, 12000)                       \
    FUNCTION(cuGraphKernelNodeGetParams, 12000)                 \
    FUNCTION(cuGraphKernelNodeSetParams, 12000)                 \
    FUNCTION(cuGraphKernelNodeGetAttribute, 11000)              \
    FUNCTION(cuGraphKernelNodeSetAttribute, 11000)              \
    FUNCTION(cuGraphKernelNodeCopyAttributes, 11000)            \
    FUNCTION(cuGraphAddMemcpyNode, 10000)                       \
    FUNCTION(cuGraphMemcpyNodeGetParams, 10000)                 \
    FUNCTION(cuGraphAddMemsetNode, 10000)                       \
    FUNCTION(cuGraphMemsetNodeGetParams, 10000)                 \
    FUNCTION(cuGraphMemsetNodeSetParams, 10000)                 \
    FUNCTION(cuGraphAddHostNode, 10000)                         \
    FUNCTION(cuGraphHostNodeGetParams, 10000)                   \
    FUNCTION(cuGraphAddChildGraphNode, 10000)                   \
    FUNCTION(cuGraphChildGraphNodeGetGraph, 10000)              \
    FUNCTION(cuGraphAddEmptyNode, 10000)                        \
    FUNCTION(cuGraphAddEventRecordNode, 11010)                  \
    FUNCTION(cuGraphAddEventWaitNode, 11010)                    \
    FUNCTION(cuGraphEventRecordNodeGetEvent, 11010)             \
    FUNCTION(cuGraphAddMemAllocNode, 11040)                     \
    FUNCTION(cuGraphMemAllocNodeGetParams, 11040)               \
    FUNCTION(cuGraphAddMemFreeNode, 11040)                      \
    FUNCTION(cuDeviceGraphMemTrim, 11040)                       \
    FUNCTION(cuDeviceGetGraphMemAttribute, 11040)               \
    FUNCTION(cuDeviceSetGraphMemAttribute, 11040)               \
    FUNCTION(cuGraphAddNode, 12030)                             \
    FUNCTION(cuGraphNodeSetParams, 12020)                       \
    FUNCTION(cuGraphExecNodeSetParams, 12020)                   \
    FUNCTION(cuGraphExecKernelNodeSetParams, 12000)             \
    FUNCTION(cuGraphExecMemcpyNodeSetParams, 10020)             \
    FUNCTION(cuGraphExecHostNodeSetParams, 10020)               \
    FUNCTION(cuGraphExecChildGraphNodeSetParams, 11010)         \
    FUNCTION(cuGraphExecEventWaitNodeSetEvent, 11010)           \
    FUNCTION(cuGraphExecGetFlags, 12000)                        \
    FUNCTION(cuGraphNodeSetEnabled, 11060)                      \
    FUNCTION(cuGraphNodeGetEnabled, 11060)                      \
    FUNCTION(cuGraphGetEdges, 12030)                            \
    FUNCTION(cuGraphNodeGetDependentNodes, 12030)               \
    FUNCTION(cuGraphAddDependencies, 12030)                     \
    FUNCTION(cuGraphRemoveDependencies, 12030)                  \
    FUNCTION(cuGraphDestroyNode, 10000)                         \
    FUNCTION(cuGraphClone, 10000)                               \
    FUNCTION(cuGraphNodeFindInClone, 10000)                     \
    FUNCTION(cuGraphDebugDotPrint, 11030)                       \
    FUNCTION(cuGraphConditionalHandleCreate, 12030)             \
    FUNCTION(cuStreamBeginCaptureToGraph, 12030)                \
    FUNCTION(cuStreamUpdateCaptureDependencies, 12030)          \
    FUNCTION(cuIpcGetEventHandle, 4010)                         \
    FUNCTION(cuIpcOpenEventHandle, 4010)                        \
    FUNCTION(cuIpcGetMemHandle, 4010)                           \
    FUNCTION(cuIpcOpenMemHandle, 11000)                         \
    FUNCTION(cuIpcCloseMemHandle, 4010)                         \
    FUNCTION(cuGetExportTable, 3000)

/// A loaded copy of the library with its own state. Each copy reads the environment itself, so that one test program
/// can have several configurations. Never unloaded: the device keeps state until the process ends.
class Library {
  public:
    using Environment = std::initializer_list<std::pair<const char*, const char*>>;

    /// Loads a new copy under `environment` and calls cuInit. The policy is lazy, unless `environment` or that of the
    /// test program names another.
    explicit Library(const Environment& environment = {});
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

#define CLIENT_DECLARE(name, version) PFN_##name##_v##version name = nullptr;
    CLIENT_FUNCTIONS(CLIENT_DECLARE)
#undef CLIENT_DECLARE
    PFN_cuGetProcAddress_v12000 get_proc_address = nullptr;
    CUresult initialised = CUDA_ERROR_NOT_INITIALIZED;  ///< what cuInit returned

    decltype(&bascule_emulated_abi) abi = nullptr;
    decltype(&bascule_emulated_trace) trace = nullptr;
    decltype(&bascule_emulated_trace_read) trace_read = nullptr;
    decltype(&bascule_emulated_name_allocation) name_allocation = nullptr;
    decltype(&bascule_emulated_call_count) call_count = nullptr;
    decltype(&bascule_emulated_last_fault) last_fault = nullptr;
    decltype(&bascule_emulated_next_site) next_site = nullptr;

    /// The newest fault's report.
    std::string report() const;
    std::vector<BasculeEmulatedOperation> operations() const;
    void* symbol(const char* name) const;
    /// Calls dlclose; nothing of the library may be called afterwards.
    void close();

  private:
    decltype(&bascule_emulated_last_report) last_report_ = nullptr;
    void* handle_ = nullptr;
};

/// A library whose device 0 is current in this thread during its lifetime, with a few shorthands. The shorthands fail
/// the test if the driver returns an error.
class Device {
  public:
    /// Uses the copy that most tests share.
    Device();
    explicit Device(Library& library);
    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    Library& api;

    CUdeviceptr allocate(std::size_t bytes);
    /// Allocates `count` floats, all equal to `value`.
    CUdeviceptr floats(std::size_t count, float value);
    float read(CUdeviceptr address);
    CUstream stream(unsigned flags = CU_STREAM_NON_BLOCKING);
    CUevent event();
    CUfunction kernel(const char* name);
    /// Launches the kernel `name` on the values from `address` on.
    CUresult launch(const char* name, CUstream stream, CUdeviceptr address, unsigned blocks = 1,
                    unsigned threads = 1);

  private:
    CUlibrary program_ = nullptr;
    std::vector<CUstream> streams_;
    std::vector<CUevent> events_;
    std::vector<CUdeviceptr> memory_;
};

/// Kernels with one pointer parameter: `increment` adds one to the float of each thread, `twice` doubles it, `trap`
/// traps, `await` loops until the word at the address is not 0, `raise` adds 1 to it, `meet` adds 1 to it and loops
/// until it is at least the next word, `refused` has an instruction that no device of this architecture has. Variables:
/// `counter` (4 bytes, 7), `table` (64 constant bytes).
extern const char* const program;

}  // namespace client
