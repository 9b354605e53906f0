// The driver's functions that exist here, in two lists. A function that is in neither does not compile.
#pragma once

#include <algorithm>
#include <string_view>

namespace emulated::driver {

// clang-format off
/// Functions that Bascule calls. Each is implemented completely: every use that Bascule may make of it works as on a
/// GPU or is refused with a report. tests/runtime/emulated_functions_test.cpp compares this list with Bascule's
/// function table.
inline constexpr std::string_view functions_of_bascule[] = {
    "cuArray3DCreate", "cuArrayDestroy", "cuCtxEnablePeerAccess", "cuCtxGetCurrent", "cuCtxGetDevice",
    "cuCtxGetLimit", "cuCtxGetStreamPriorityRange", "cuCtxRecordEvent", "cuCtxSetCurrent", "cuCtxSetLimit",
    "cuCtxSynchronize", "cuDeviceCanAccessPeer", "cuDeviceGet", "cuDeviceGetAttribute", "cuDeviceGetCount",
    "cuDeviceGetName", "cuDevicePrimaryCtxGetState", "cuDevicePrimaryCtxRetain", "cuDeviceTotalMem", "cuDriverGetVersion",
    "cuEventCreate", "cuEventDestroy", "cuEventElapsedTime", "cuEventQuery", "cuEventRecord", "cuEventSynchronize",
    "cuFuncLoad", "cuGetErrorName", "cuGetErrorString", "cuGetProcAddress", "cuGraphAddChildGraphNode",
    "cuGraphDestroy", "cuGraphExecDestroy", "cuGraphExecUpdate", "cuGraphGetNodes", "cuGraphInstantiateWithFlags",
    "cuGraphLaunch", "cuGraphRetainUserObject", "cuInit", "cuKernelGetAttribute", "cuKernelGetFunction",
    "cuKernelGetParamCount", "cuKernelGetParamInfo", "cuKernelSetAttribute", "cuKernelSetCacheConfig",
    "cuLaunchHostFunc", "cuLaunchKernelEx", "cuLibraryGetGlobal", "cuLibraryGetKernel", "cuLibraryLoadData",
    "cuLibraryUnload", "cuLinkAddData", "cuLinkComplete", "cuLinkCreate", "cuLinkDestroy", "cuMemAlloc",
    "cuMemAllocFromPoolAsync", "cuMemAllocManaged", "cuMemFree", "cuMemFreeAsync", "cuMemFreeHost", "cuMemGetInfo",
    "cuMemHostAlloc", "cuMemPoolCreate", "cuMemPoolGetAttribute", "cuMemPoolSetAccess", "cuMemPoolSetAttribute",
    "cuMemPoolTrimTo", "cuMemcpy3DAsync", "cuMemcpyDtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpyHtoDAsync",
    "cuMemcpyPeerAsync", "cuMemsetD16Async", "cuMemsetD32Async", "cuMemsetD8Async",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuOccupancyMaxPotentialBlockSize", "cuPointerGetAttributes",
    "cuStreamBeginCapture", "cuStreamCreateWithPriority", "cuStreamDestroy", "cuStreamEndCapture",
    "cuStreamGetCaptureInfo", "cuStreamGetCtx", "cuStreamGetPriority", "cuStreamIsCapturing", "cuStreamQuery",
    "cuStreamSynchronize", "cuStreamUpdateCaptureDependencies", "cuStreamWaitEvent", "cuSurfObjectCreate",
    "cuSurfObjectDestroy", "cuTensorMapEncodeIm2col", "cuTensorMapEncodeTiled", "cuTexObjectCreate",
    "cuTexObjectDestroy", "cuThreadExchangeStreamCaptureMode", "cuUserObjectCreate", "cuUserObjectRelease",
};

/// Functions for other clients, such as numba-cuda, cuda.core and PyCUDA. This list is frozen: it only loses functions, to the
/// list above, when Bascule comes to call them.
inline constexpr std::string_view functions_for_other_clients[] = {
    "cuArray3DGetDescriptor", "cuArrayCreate", "cuArrayGetDescriptor", "cuCtxCreate", "cuCtxDestroy", "cuCtxDetach",
    "cuCtxDisablePeerAccess", "cuCtxGetApiVersion", "cuCtxGetCacheConfig", "cuCtxGetFlags", "cuCtxGetId",
    "cuCtxGetSharedMemConfig", "cuCtxPopCurrent", "cuCtxPushCurrent", "cuCtxResetPersistingL2Cache",
    "cuCtxSetCacheConfig", "cuCtxSetFlags", "cuCtxSetSharedMemConfig", "cuDeviceComputeCapability",
    "cuDeviceGetByPCIBusId", "cuDeviceGetDefaultMemPool", "cuDeviceGetGraphMemAttribute", "cuDeviceGetMemPool",
    "cuDeviceGetP2PAttribute", "cuDeviceGetPCIBusId", "cuDeviceGetProperties", "cuDeviceGetUuid",
    "cuDeviceGraphMemTrim", "cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxSetFlags",
    "cuDeviceSetGraphMemAttribute", "cuDeviceSetMemPool", "cuEventRecordWithFlags",
    "cuFuncGetAttribute", "cuFuncGetModule", "cuFuncGetName", "cuFuncGetParamInfo", "cuFuncIsLoaded",
    "cuFuncSetAttribute", "cuFuncSetBlockShape", "cuFuncSetCacheConfig", "cuFuncSetSharedMemConfig",
    "cuFuncSetSharedSize", "cuGetExportTable", "cuGraphAddDependencies", "cuGraphAddEmptyNode",
    "cuGraphAddEventRecordNode", "cuGraphAddEventWaitNode", "cuGraphAddHostNode", "cuGraphAddKernelNode",
    "cuGraphAddMemAllocNode", "cuGraphAddMemFreeNode", "cuGraphAddMemcpyNode", "cuGraphAddMemsetNode",
    "cuGraphAddNode", "cuGraphChildGraphNodeGetGraph", "cuGraphClone", "cuGraphConditionalHandleCreate",
    "cuGraphCreate", "cuGraphDebugDotPrint", "cuGraphDestroyNode", "cuGraphEventRecordNodeGetEvent",
    "cuGraphEventRecordNodeSetEvent", "cuGraphEventWaitNodeGetEvent", "cuGraphEventWaitNodeSetEvent",
    "cuGraphExecChildGraphNodeSetParams", "cuGraphExecEventRecordNodeSetEvent", "cuGraphExecEventWaitNodeSetEvent",
    "cuGraphExecGetFlags", "cuGraphExecHostNodeSetParams", "cuGraphExecKernelNodeSetParams",
    "cuGraphExecMemcpyNodeSetParams", "cuGraphExecMemsetNodeSetParams", "cuGraphExecNodeSetParams",
    "cuGraphGetEdges", "cuGraphGetRootNodes", "cuGraphHostNodeGetParams", "cuGraphHostNodeSetParams",
    "cuGraphInstantiate", "cuGraphInstantiateWithParams", "cuGraphKernelNodeCopyAttributes",
    "cuGraphKernelNodeGetAttribute", "cuGraphKernelNodeGetParams", "cuGraphKernelNodeSetAttribute",
    "cuGraphKernelNodeSetParams", "cuGraphMemAllocNodeGetParams", "cuGraphMemFreeNodeGetParams",
    "cuGraphMemcpyNodeGetParams", "cuGraphMemcpyNodeSetParams", "cuGraphMemsetNodeGetParams",
    "cuGraphMemsetNodeSetParams", "cuGraphNodeFindInClone", "cuGraphNodeGetDependencies",
    "cuGraphNodeGetDependentNodes", "cuGraphNodeGetEnabled", "cuGraphNodeGetType", "cuGraphNodeSetEnabled",
    "cuGraphNodeSetParams", "cuGraphReleaseUserObject", "cuGraphRemoveDependencies", "cuGraphUpload",
    "cuIpcCloseMemHandle", "cuIpcGetEventHandle", "cuIpcGetMemHandle", "cuIpcOpenEventHandle", "cuIpcOpenMemHandle",
    "cuKernelGetLibrary", "cuKernelGetName", "cuLaunch", "cuLaunchCooperativeKernel", "cuLaunchGrid",
    "cuLaunchGridAsync", "cuLaunchKernel", "cuLibraryEnumerateKernels", "cuLibraryGetKernelCount",
    "cuLibraryGetManaged", "cuLibraryGetModule", "cuLibraryGetUnifiedFunction", "cuLibraryLoadFromFile",
    "cuLinkAddFile", "cuMemAdvise", "cuMemAllocAsync", "cuMemAllocHost", "cuMemAllocPitch",
    "cuMemDiscardAndPrefetchBatchAsync", "cuMemDiscardBatchAsync", "cuMemGetAddressRange", "cuMemGetDefaultMemPool",
    "cuMemGetMemPool", "cuMemHostGetDevicePointer", "cuMemHostGetFlags", "cuMemHostRegister", "cuMemHostUnregister",
    "cuMemPoolDestroy", "cuMemPoolGetAccess", "cuMemPrefetchAsync", "cuMemPrefetchBatchAsync",
    "cuMemRangeGetAttribute", "cuMemRangeGetAttributes", "cuMemSetMemPool", "cuMemcpy", "cuMemcpy2D",
    "cuMemcpy2DAsync", "cuMemcpy2DUnaligned", "cuMemcpy3D", "cuMemcpy3DPeer", "cuMemcpy3DPeerAsync",
    "cuMemcpyAsync", "cuMemcpyAtoA", "cuMemcpyAtoD", "cuMemcpyAtoH", "cuMemcpyAtoHAsync", "cuMemcpyBatchAsync",
    "cuMemcpyDtoA", "cuMemcpyDtoD", "cuMemcpyDtoH", "cuMemcpyHtoA", "cuMemcpyHtoAAsync", "cuMemcpyHtoD",
    "cuMemcpyPeer", "cuMemsetD16", "cuMemsetD2D16", "cuMemsetD2D16Async", "cuMemsetD2D32", "cuMemsetD2D32Async",
    "cuMemsetD2D8", "cuMemsetD2D8Async", "cuMemsetD32", "cuMemsetD8", "cuMipmappedArrayCreate",
    "cuMipmappedArrayDestroy", "cuMipmappedArrayGetLevel", "cuModuleEnumerateFunctions", "cuModuleGetFunction",
    "cuModuleGetFunctionCount", "cuModuleGetGlobal", "cuModuleGetLoadingMode", "cuModuleLoad", "cuModuleLoadData",
    "cuModuleLoadDataEx", "cuModuleLoadFatBinary", "cuModuleUnload", "cuOccupancyAvailableDynamicSMemPerBlock",
    "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", "cuOccupancyMaxActiveClusters",
    "cuOccupancyMaxPotentialBlockSizeWithFlags", "cuOccupancyMaxPotentialClusterSize", "cuParamSetSize",
    "cuParamSetf", "cuParamSeti", "cuParamSetv", "cuPointerGetAttribute", "cuPointerSetAttribute",
    "cuProfilerStart", "cuProfilerStop", "cuStreamAddCallback", "cuStreamAttachMemAsync",
    "cuStreamBeginCaptureToGraph", "cuStreamCreate", "cuStreamGetDevice", "cuStreamGetFlags", "cuStreamGetId",
    "cuSurfObjectGetResourceDesc", "cuTensorMapReplaceAddress", "cuTexObjectGetResourceDesc",
    "cuTexObjectGetResourceViewDesc", "cuTexObjectGetTextureDesc", "cuUserObjectRetain",
};
// clang-format on

consteval bool is_listed(std::string_view name) {
    return std::ranges::binary_search(functions_of_bascule, name) ||
           std::ranges::binary_search(functions_for_other_clients, name);
}

}  // namespace emulated::driver
