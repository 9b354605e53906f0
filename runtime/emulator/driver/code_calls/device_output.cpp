#include "driver/code_calls/device_output.hpp"

#include <atomic>

#include "emulated_abi.h"

namespace emulated::driver {
namespace {

std::atomic<BasculeEmulatedPrint> print_of_client{nullptr};

}  // namespace

std::function<void(const char*, std::size_t)> device_output() {
    return print_of_client.load(std::memory_order_relaxed);
}

}  // namespace emulated::driver

extern "C" __attribute__((visibility("default"))) void bascule_emulated_set_print(
    BasculeEmulatedPrint print) {
    emulated::driver::print_of_client.store(print);
}
