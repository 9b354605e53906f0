// Names that nvcc has without an #include and NVRTC lacks: GNU's spellings of asm, and programmatic dependent launch.
#pragma once

#define __asm asm
#define __asm__ asm
#define __volatile volatile
#define __extension__

// Templates, so that the functions of <cuda_device_runtime_api.h> are preferred if a text includes it. Before compute
// capability 9.0 there are no such launches: a grid starts after all grids that it depends on have finished.
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
