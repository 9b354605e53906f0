#include <vector>

#include <doctest/doctest.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/driver/home_device.hpp>

#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

TEST_CASE("the_emulated_device_is_compiled_for_as_compute_80") {
    const Device device = Device::current();
    CHECK(device.ordinal() == 0);
    CHECK(device.emulated());
    CHECK(to_string(device.arch()) == "compute_80");
    CHECK_FALSE(device.name().empty());
    CHECK(device.limits().threads == 1024);
    CHECK(device.limits().grid.y == 65535);
    CHECK(device.multiprocessors() > 0);
}

TEST_CASE("a_device_that_does_not_exist_is_refused_with_how_many_there_are") {
    for (const int ordinal : {-1, Device::count(), 1000}) {
        try {
            Device device(ordinal);
            FAIL("no error");
        } catch (const ArgumentError& error) {
            CHECK(std::string(error.what()).find("there is no device") == 0);
        }
    }
}

TEST_CASE("a_guard_makes_the_context_current_and_a_thread_that_had_none_keeps_it") {
    const DriverFunctions& api = Driver::get().api();
    const Device device(0);
    REQUIRE(api.cuCtxSetCurrent(nullptr) == CUDA_SUCCESS);
    CUcontext current = nullptr;
    {
        const ContextGuard guard(device.context());
        api.cuCtxGetCurrent(&current);
        CHECK(current == device.context());
    }
    api.cuCtxGetCurrent(&current);
    CHECK(current == device.context());
    CHECK(calls_of("cuCtxSetCurrent", [&] { const ContextGuard again(device.context()); }) == 0);
}

TEST_CASE("device_memory_is_asked_about_once_for_its_block") {
    const Device device(0);
    const DeviceBuffer buffer(4096, device);
    forget_pointer(buffer.address(), buffer.bytes());
    const ArrayView view = floats(buffer);
    CHECK(calls_of("cuPointerGetAttributes", [&] { resolve(view, device); }) == 1);
    CHECK(calls_of("cuPointerGetAttributes", [&] { resolve(view, device); }) == 0);
    CHECK(resolve(view, device).pointer == buffer.address());
    forget_pointer(buffer.address(), buffer.bytes());
    CHECK(calls_of("cuPointerGetAttributes", [&] { resolve(view, device); }) == 1);
}

TEST_CASE("freed_memory_is_not_taken_for_proven") {
    const Device device(0);
    ArrayView view;
    {
        const DeviceBuffer buffer(4096, device);
        view = floats(buffer);
        resolve(view, device);
    }
    CHECK_THROWS_AS(resolve(view, device), ArgumentError);
}

TEST_CASE("memory_that_the_emulated_device_does_not_know_says_where_it_may_come_from") {
    std::vector<float> host(16);
    RawInterface raw;
    raw.shape.push_back(16);
    raw.typestr = "<f4";
    raw.pointer = reinterpret_cast<std::uint64_t>(host.data());
    try {
        resolve(validate(raw), Device(0));
        FAIL("no error");
    } catch (const ArgumentError& error) {
        const std::string message = error.what();
        CHECK(message.find("memory that the emulated device does not know") != std::string::npos);
        CHECK(message.find("BASCULE_DEVICE=cuda") != std::string::npos);
        CHECK(message.find("bascule::copy_to_device(...)") != std::string::npos);
    }
}

TEST_CASE("an_empty_array_is_not_asked_about") {
    RawInterface raw;
    raw.shape.push_back(0);
    raw.typestr = "<f4";
    const ArrayView view = validate(raw);
    CHECK(calls_of("cuPointerGetAttributes", [&] { resolve(view, Device(0)); }) == 0);
}

TEST_CASE("pinned_host_memory_resolves_to_its_device_address_and_is_asked_about_each_time") {
    const Driver& driver = Driver::get();
    const Device device(0);
    const ContextGuard context(device.context());
    void* pinned = nullptr;
    REQUIRE(driver.api().cuMemHostAlloc(&pinned, 4096, CU_MEMHOSTALLOC_PORTABLE) == CUDA_SUCCESS);
    RawInterface raw;
    raw.shape.push_back(1024);
    raw.typestr = "<f4";
    raw.pointer = reinterpret_cast<std::uint64_t>(pinned);
    const ArrayView view = validate(raw);
    CHECK(resolve(view, device).pointer != 0);
    CHECK(calls_of("cuPointerGetAttributes", [&] { resolve(view, device); }) == 1);
    driver.api().cuMemFreeHost(pinned);
}
