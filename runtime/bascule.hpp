// What C++ programs include: kernels from CUDA C++ text, memory, streams, events, graphs, errors.
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
//             std::vector<float> values(1000, 1);
//             const bascule::Device device = bascule::Device::current();
//             const bascule::Stream stream(device);
//             const bascule::DeviceBuffer x(values.size() * sizeof(float), device);
//             copy_to_device(stream, x.address(), values.data(), x.bytes());
//
//             const std::uint64_t work[] = {values.size()};               // threads; or {grid, block} by hand
//             launch(stream, scale.configuration_for(device, work), reinterpret_cast<float*>(x.address()), 2, 1000);
//             copy_to_host(stream, values.data(), x.address(), x.bytes());  // waits for the kernel
//             std::printf("%g\n", values[0]);                             // 2
//         } catch (const bascule::Error& error) {  // CompileError, ArgumentError, CudaError, LibraryError
//             std::fprintf(stderr, "%s\n", error.what());
//             return 1;
//         }
//     }
//
// Link it with find_package(bascule) and bascule::bascule. NVRTC and the driver are opened at run time.
#pragma once

#include <bascule/interface/arrays/dlpack.hpp>
#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/driver/device.hpp>
#include <bascule/runtime/driver/home_device.hpp>
#include <bascule/runtime/kernels/kernel.hpp>
#include <bascule/runtime/kernels/typed_kernel.hpp>
#include <bascule/runtime/memory/global.hpp>
#include <bascule/runtime/memory/memory.hpp>
#include <bascule/runtime/streams/event.hpp>
#include <bascule/runtime/streams/graph.hpp>
#include <bascule/runtime/streams/stream.hpp>
