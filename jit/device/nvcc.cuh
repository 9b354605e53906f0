// What nvcc knows without an #include, and NVRTC does not: GNU's spellings of asm, and programmatic dependent launch.
#pragma once

#define __asm asm
#define __asm__ asm
#define __volatile volatile
#define __extension__

// Templates, so that the functions of <cuda_device_runtime_api.h> are preferred where a text includes it. A GPU before
// compute capability 9.0 has no such launches: all that a grid depends on has finished before it.
template <class = void>
__device__ inline void cudaGridDependencySynchronize() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
template <class = void>
__device__ inline void cudaTriggerProgrammaticLaunchCompletion() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}
