// The types of the driver API's header that kernels use: tensor maps and handles. Its functions are for the host.
#pragma once

#define CUDA_VERSION (__CUDACC_VER_MAJOR__ * 1000 + __CUDACC_VER_MINOR__ * 10)

using cuuint32_t = unsigned int;
using cuuint64_t = unsigned long long;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUtexObject = unsigned long long;
using CUsurfObject = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUarray = struct CUarray_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;

/// The tensor map that cuTensorMapEncodeTiled fills.
struct CUtensorMap_st {
    alignas(64) cuuint64_t opaque[16];
};
using CUtensorMap = CUtensorMap_st;
