#include "child.hpp"

#include <cstdio>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/driver/driver.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

/// Prints properties of the driver that Driver::get chose.
void choose_driver() {
    const Driver& driver = Driver::get();
    std::printf("emulated=%d devices=%d version=%d path=%s reason=%s\n", driver.emulated() ? 1 : 0,
                driver.device_count(), driver.version(), driver.path().c_str(),
                driver.fallback_reason().c_str());
}

/// Runs a kernel that writes past its array, launches again after the fault, and prints the errors.
void fault() {
    TestModule program("__global__ void past(float* p, int n) { p[threadIdx.x + n] = 1; }");
    const Kernel kernel = program.module.kernel("past");
    const Stream stream;
    DeviceBuffer buffer(1024);
    const auto launch = [&] {
        ArgumentPack args(kernel.signature());
        args.set(0, floats(buffer));
        args.set(1, integer(256));
        kernel.launch(stream, {.grid = {1}, .block = {256}}, args);
        stream.ref().synchronize();
    };
    for (const char* attempt : {"first", "second"}) {
        try {
            launch();
            std::printf("%s: nothing happened\n", attempt);
        } catch (const CudaError& error) {
            std::printf("%s: %s\n", attempt, error.what());
        }
    }
}

}  // namespace

int play(const std::string& role) {
    try {
        if (role == "driver") choose_driver();
        if (role == "fault") fault();
        return 0;
    } catch (const LibraryError& error) {
        std::printf("LibraryError: %s\n", error.what());
    } catch (const CudaError& error) {
        std::printf("CudaError %d: %s\n", error.code(), error.what());
    } catch (const Error& error) {
        std::printf("Error: %s\n", error.what());
    }
    return 1;
}

}  // namespace bascule::testing
