// The header for C++ programs: kernels from CUDA C++ text, memory, streams, events, graphs, errors.
//
//     #include <cstdio>
//     #include <vector>
//
//     #include <bascule/bascule.hpp>
//
//     int main() {
//         bascule::Source source;
//         source.name = "scale.cu";  // for messages
//         source.text = R"(
//             __global__ void scale(float* x, float a, int n) {
//                 int i = blockIdx.x * blockDim.x + threadIdx.x;
//                 if (i < n) x[i] *= a;
//             }
//         )";
//         try {
//             const bascule::Kernel scale(source, "scale");               // compiled at the first use, then cached
//             const auto launch = scale.typed<void(float*, float, int)>();  // checks that these are its types
//
//             const bascule::Stream stream;
//             const auto x = bascule::to_device(std::vector<float>(1000, 1), stream);  // a DeviceArray<float>
//             launch.forall(stream, 1000, x, 2, 1000);                 // or launch(stream, {.grid = {4}, .block = {256}}, x, 2, 1000)
//             std::printf("%g\n", x.copy_to_host()[0]);               // waits for the kernel; 2
//         } catch (const bascule::Error& error) {  // CompileError, ArgumentError, CudaError, LibraryError
//             std::fprintf(stderr, "%s\n", error.what());
//             return 1;
//         }
//     }
//
// Link it with find_package(bascule) and bascule::bascule. NVRTC and the driver are opened at run time.
#pragma once

#if __cplusplus < 202002L
#error "bascule needs C++20: compile with -std=c++20, or set CMAKE_CXX_STANDARD to 20"
#else  // the errors of other headers would hide the message above

#include <bascule/interface/arrays/dlpack.hpp>
#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/program/program.hpp>
#include <bascule/jit/text/tokenizer.hpp>
#include <bascule/runtime/driver/device.hpp>
#include <bascule/runtime/driver/home_device.hpp>
#include <bascule/runtime/driver/installation.hpp>
#include <bascule/runtime/graphs/graph.hpp>
#include <bascule/runtime/kernels/global.hpp>
#include <bascule/runtime/kernels/kernel.hpp>
#include <bascule/runtime/kernels/launch_hooks.hpp>
#include <bascule/runtime/kernels/library.hpp>
#include <bascule/runtime/kernels/typed_kernel.hpp>
#include <bascule/runtime/lifetime/lifetime.hpp>
#include <bascule/runtime/linking/linking.hpp>
#include <bascule/runtime/memory/device_array.hpp>
#include <bascule/runtime/memory/memory.hpp>
#include <bascule/runtime/streams/event.hpp>
#include <bascule/runtime/streams/stream.hpp>
#include <bascule/runtime/textures/tensor_map.hpp>
#include <bascule/runtime/textures/texture.hpp>
#include <bascule/runtime/trace/trace.hpp>

#endif
