#include <utility>

#include <doctest/doctest.h>

#include <bascule/interface/arrays/array_views.hpp>
#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/elementwise/elementwise.hpp>
#include <bascule/runtime/memory/memory.hpp>

#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

TEST_CASE("no bytes allocate nothing and copy nothing") {
    const DeviceBuffer buffer(0);
    CHECK(buffer.address() == 0);
    CHECK(buffer.bytes() == 0);
    const Stream stream;
    const OperationTrace trace;
    copy_to_device(stream, 0, nullptr, 0);
    copy_to_host(stream, nullptr, 0, 0);
    CHECK(trace.spelled({}).empty());
}

TEST_CASE("a moved buffer is freed once") {
    DeviceBuffer first(1024);
    const std::uint64_t address = first.address();
    const std::uint64_t frees = calls_of("cuMemFree", [&] {
        const DeviceBuffer second = std::move(first);
        CHECK(second.address() == address);
        CHECK(first.address() == 0);  // NOLINT(bugprone-use-after-move): what is tested
    });
    CHECK(frees == 1);
}

TEST_CASE("too large an allocation says how much was asked for and how much is free") {
    try {
        const DeviceBuffer buffer(std::size_t{1} << 50);
        FAIL("no error");
    } catch (const CudaError& error) {
        const std::string message = error.what();
        CHECK(error.code() == CUDA_ERROR_OUT_OF_MEMORY);
        CHECK(message.find("allocating 1125899906842624 bytes") != std::string::npos);
        CHECK(message.find("are free") != std::string::npos);
    }
}

TEST_CASE("a copy to pageable memory is there when the call returns, and keeps no owner") {
    synchronize();
    const Stream stream;
    const DeviceBuffer buffer = on_device(stream, counting(64));
    int released = 0;
    const Owner owner{&released, &count_releases<int>};
    std::vector<float> values(64);
    copy_to_host(stream, values.data(), buffer.address(), buffer.bytes(), {}, owner);
    CHECK(values == counting(64));
    CHECK(released == 1);
}

TEST_CASE("the owners of a copy that fails are taken all the same") {
    synchronize();
    int released = 0;
    const Owner owner{&released, &count_releases<int>};
    const Stream stream;
    float value = 1;
    CHECK_THROWS_AS(copy_to_device(stream, 0x10, &value, 4, {}, owner), CudaError);
    synchronize();
    CHECK(released == 1);
}

TEST_CASE("what lies in one run is copied by the driver, whatever its axes are called") {
    const Stream stream;
    const DeviceBuffer from = on_device(stream, counting(60));
    const DeviceBuffer to(240);
    Dimensions shape;
    shape.push_back(6);
    shape.push_back(10);
    const auto transposed = [&](const DeviceBuffer& buffer) {
        return transpose(reshape(floats(buffer), shape));
    };
    const OperationTrace trace;
    copy_elements(stream, transposed(to), transposed(from));
    CHECK(trace.spelled({}).empty());  // no launch
    CHECK(on_host(stream, to) == counting(60));
}
