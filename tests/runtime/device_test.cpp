#include <vector>

#include <doctest/doctest.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/driver/emulated_device.hpp>
#include <bascule/runtime/driver/home_device.hpp>
#include <bascule/runtime/driver/installation.hpp>

#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

namespace {

/// A function of the emulated driver that Bascule does not use.
template <class Function>
Function* other_function(const char* name) {
    return reinterpret_cast<Function*>(open_emulated_library().find(name));
}

}  // namespace

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

TEST_CASE("attributes_have_the_names_and_values_of_the_driver_api") {
    const Device device(0);
    CHECK(device.attribute("clock_rate") == Driver::get().attribute_of(0, CU_DEVICE_ATTRIBUTE_CLOCK_RATE));
    const std::vector<DeviceAttribute> all = device.attributes();
    CHECK(all.size() == 147);  // as many as <cuda.h> of CUDA 13.0 has, the version that the device imitates
    CHECK(all.front().name == "max_threads_per_block");
    CHECK(all.front().value == 1024);
    CHECK(all.back().name == "only_partial_host_native_atomic_supported");
    CHECK_THROWS_WITH_AS(device.attribute("clok_rate"),
                         "devices have no attribute 'clok_rate'. Did you mean 'clock_rate'?", ArgumentError);
    CHECK_THROWS_WITH_AS(
        device.attribute("locality_domain_count"),
        "the driver, of CUDA 13.0, does not know the attribute 'locality_domain_count'. A newer "
        "driver does.",
        ArgumentError);
    CHECK(device.pci_bus_id() == "0000:00:00.0");
}

TEST_CASE("free_memory_is_what_allocations_have_left_of_the_total") {
    const Device device(0);
    CHECK(device.total_memory() == std::size_t{2} << 30);
    const std::size_t before = device.free_memory();
    CHECK(before <= device.total_memory());
    const ContextGuard guard(device.context());
    CUdeviceptr address = 0;
    REQUIRE(Driver::get().api().cuMemAlloc(&address, 1 << 20) == CUDA_SUCCESS);
    CHECK(device.free_memory() + (1 << 20) <= before);
    CHECK(Driver::get().api().cuMemFree(address) == CUDA_SUCCESS);
}

TEST_CASE("the_description_of_the_installation_names_device_driver_nvrtc_and_headers") {
    const std::string text = describe_installation();
    CAPTURE(text);
    CHECK(text.starts_with("device     "));
    CHECK(text.find("kernels are compiled for compute_80\ndriver     emulated device ") != text.npos);
    CHECK(text.find(Driver::get().path()) != text.npos);
    const std::size_t nvrtc = text.find("\nnvrtc      1");
    REQUIRE(nvrtc != text.npos);
    CHECK(text.find("libnvrtc.so", nvrtc) < text.find("\nheaders    /", nvrtc));
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

TEST_CASE("device_memory_is_asked_about_once_for_its_block_where_its_device_is_known") {
    const Device device(0);
    const DeviceBuffer buffer(4096, device);
    forget_pointer(buffer.address(), buffer.bytes());
    const ArrayView view = floats(buffer);
    const auto queries = [&](int told) {
        return calls_of("cuPointerGetAttributes", [&] {
            ArrayView each = view;
            Home home{.device = device};
            resolve_at_home(each, home, told);
            CHECK(each.pointer == buffer.address());
            CHECK(home.device == device);
        });
    };
    CHECK(queries(0) == 1);
    CHECK(queries(0) == 0);
    // Where nothing says the device, another library may have freed the memory and reused its address on another one.
    const std::uint64_t each_time = Device::count() > 1 ? 1 : 0;
    CHECK(queries(no_device_named) == each_time);
    CHECK(queries(no_device_named) == each_time);
    for (const int wrong : {1, -1}) {
        ArrayView each = view;
        Home home{.device = device};
        CHECK_THROWS_AS(resolve_at_home(each, home, wrong), ArgumentError);
    }
    forget_pointer(buffer.address(), buffer.bytes());
    CHECK(queries(0) == 1);
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

TEST_CASE("pinned_host_memory_resolves_to_its_device_address_and_is_asked_about_once_on_one_device") {
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
    CHECK(calls_of("cuPointerGetAttributes", [&] { resolve(view, device); }) ==
          (Device::count() > 1 ? 1 : 0));
    forget_pointer(raw.pointer, 4096);
    CHECK(calls_of("cuPointerGetAttributes", [&] { resolve(view, device); }) == 1);
    driver.api().cuMemFreeHost(pinned);
}

TEST_CASE("a_device_that_is_only_named_has_no_context") {
    const DriverFunctions& api = Driver::get().api();
    const Device last(Device::count() - 1);
    CHECK_FALSE(last.name().empty());
    CUdevice native = 0;
    REQUIRE(api.cuDeviceGet(&native, last.ordinal()) == CUDA_SUCCESS);
    unsigned int flags = 0;
    int active = -1;
    REQUIRE(api.cuDevicePrimaryCtxGetState(native, &flags, &active) == CUDA_SUCCESS);
    CHECK((active != 0) == last.in_use());
    CHECK(last.is_active() == (active != 0));
    CHECK(last.context() != nullptr);
    CHECK(last.in_use());
    CHECK(Device::of_primary(last.context()) == last);
}

TEST_CASE("the_current_device_is_that_of_a_context_which_is_not_primary_and_its_streams_are_refused") {
    const DriverFunctions& api = Driver::get().api();
    const Device device(0);
    const ContextGuard guard(device.context());
    auto* const create = other_function<CUresult(CUcontext*, unsigned int, CUdevice)>("cuCtxCreate_v2");
    auto* const destroy = other_function<CUresult(CUcontext)>("cuCtxDestroy_v2");
    CUcontext other = nullptr;
    REQUIRE(create(&other, 0, 0) == CUDA_SUCCESS);
    CHECK(Device::current() == device);
    CHECK_FALSE(Device::of_primary(other).has_value());
    CUstream stream = nullptr;
    REQUIRE(api.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS);
    CHECK_THROWS_AS(device_of_stream(reinterpret_cast<std::uint64_t>(stream), device), ArgumentError);
    CUdeviceptr address = 0;
    REQUIRE(api.cuMemAlloc(&address, 4096) == CUDA_SUCCESS);
    RawInterface raw;
    raw.shape.push_back(1024);
    raw.typestr = "<f4";
    raw.pointer = address;
    try {
        resolve(validate(raw), device);
        FAIL("no error");
    } catch (const ArgumentError& error) {
        CHECK(std::string(error.what()).find("pycuda.autoprimaryctx") != std::string::npos);
    }
    REQUIRE(destroy(other) == CUDA_SUCCESS);
}

TEST_CASE("an_address_is_readable_only_where_the_process_has_something_mapped") {
    int value = 0;
    CHECK(is_readable(reinterpret_cast<std::uint64_t>(&value)));
    CHECK_FALSE(is_readable(0));
    CHECK_FALSE(is_readable(8));
    CHECK_FALSE(is_readable(~std::uint64_t{0} - 4095));
}
