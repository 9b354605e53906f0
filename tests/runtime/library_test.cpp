#include <algorithm>

#include <cuda.h>
#include <doctest/doctest.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/kernels/library.hpp>

#include "support.hpp"

using namespace bascule;

namespace {

KernelImage kernel_called(const char* name, const char* lowered_name) {
    KernelImage kernel;
    kernel.name = name;
    kernel.lowered_name = lowered_name;
    return kernel;
}

/// A program in PTX, as the compiler would have written it.
std::shared_ptr<Image> image_of(const std::string& body) {
    auto image = std::make_shared<Image>();
    image->arch = {.major = 8, .minor = 0, .suffix = '\0', .is_virtual = true};
    image->ptx = ".version 7.0\n.target sm_80\n.address_size 64\n" + body;
    image->kernels.push_back(kernel_called("empty", "empty"));
    return image;
}

constexpr const char* empty = ".visible .entry empty()\n{\n    ret;\n}\n";

}  // namespace

TEST_CASE("a kernel of an image is loaded with its limits") {
    const Device device(0);
    const std::shared_ptr<Image> image = image_of(empty);
    const Library library(image, device);
    const auto kernel = library.load(image->kernels[0], device);
    CHECK(kernel->native != nullptr);
    CHECK(kernel->limits.threads == 1024);
    CHECK(kernel->static_shared_bytes == 0);
    CHECK(kernel->limits.shared_bytes == device.limits().shared_bytes);
    CHECK(library.load_milliseconds() >= 0);
}

TEST_CASE("code that the driver refuses brings the driver's own words, once") {
    try {
        const Library library(image_of(".visible .entry broken( {\n"), Device(0));
        FAIL("no error");
    } catch (const CompileError& error) {
        const std::string message = error.what();
        CHECK(message.find("CUDA_ERROR_INVALID_PTX") != std::string::npos);
        CHECK(message.find("loading code for compute_80") != std::string::npos);
        const std::string words = Driver::get().emulated() ? "expected '.param'" : "the driver says: ";
        CHECK(message.find(words) != std::string::npos);
        CHECK(message.find(words) == message.rfind(words));
    }
}

TEST_CASE("a cubin that the device cannot run falls back to the PTX") {
    const Device device(0);
    const std::shared_ptr<Image> image = image_of(empty);
    image->cubin = std::string(
                       "\x7f"
                       "ELF",
                       4) +
                   std::string(1020, '\0');
    const Library library(image, device);
    CHECK(library.load(image->kernels[0], device)->native != nullptr);
}

TEST_CASE("a kernel that the image does not hold is an error that names it") {
    const Device device(0);
    const std::shared_ptr<Image> image = image_of(empty);
    const Library library(image, device);
    const KernelImage other = kernel_called("ns::other", "other");
    try {
        library.load(other, device);
        FAIL("no error");
    } catch (const CudaError& error) {
        CHECK(std::string(error.what()).find("loading kernel 'ns::other'") == 0);
    }
}

TEST_CASE("a variable of an image has an address and a size, once a library") {
    const Device device(0);
    const std::shared_ptr<Image> image =
        image_of(".visible .global .align 4 .b8 table[12];\n" + std::string(empty));
    const Library library(image, device);
    const std::optional<LoadedVariable> table = library.variable("table", device);
    REQUIRE(table);
    CHECK(table->bytes == 12);
    CHECK(table->address != 0);
    CHECK(library.variable("table", device)->address == table->address);
    CHECK(Library(image, device).variable("table", device)->address != table->address);
    CHECK_FALSE(library.variable("tabel", device));
}

// --- What a kernel may ask for

namespace {

constexpr const char* needs = R"(
__global__ void few(float* x) { x[threadIdx.x] += 1; }
__global__ void many(float* x) {
    float v[200];
    #pragma unroll
    for (int k = 0; k < 200; ++k) v[k] = x[k];
    __syncwarp();
    float sum = 0;
    #pragma unroll
    for (int k = 0; k < 200; ++k) sum += v[k] * v[(k * 7 + 3) % 200];
    x[0] = sum;
}
__global__ void shared(float* x) {
    __shared__ float room[10240];
    room[threadIdx.x] = x[threadIdx.x];
    float v[36];
    #pragma unroll
    for (int k = 0; k < 36; ++k) v[k] = x[k];
    __syncthreads();
    float sum = 0;
    #pragma unroll
    for (int k = 0; k < 36; ++k) sum += v[k] * v[(k * 7 + 3) % 36];
    x[threadIdx.x] = sum + room[31];
}
extern __shared__ float dynamic[];
__global__ void reverse(float* x, int n) {
    __shared__ float fixed[252];
    for (int i = threadIdx.x; i < 252; i += blockDim.x) fixed[i] = 1000;
    for (int i = threadIdx.x; i < n; i += blockDim.x) dynamic[i] = x[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = dynamic[n - 1 - i] + fixed[i % 252] - 1000;
}
)";

}  // namespace

TEST_CASE("the automatic block is the driver's own answer, and differs where the needs do") {
    const testing::TestModule test(needs);
    const Device device(0);
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    const std::uint64_t work = 1'000'000;
    std::vector<std::uint32_t> blocks;
    for (const char* name : {"few", "many", "shared"}) {
        CAPTURE(std::string(name));
        const Kernel kernel = test.module.kernel(name);
        for (const std::uint32_t dynamic : {0u, 100'000u}) {
            CUfunction function = nullptr;
            int grid = 0;
            int block = 0;
            REQUIRE(driver.api().cuKernelGetFunction(&function, kernel.loaded(device).native) ==
                    CUDA_SUCCESS);
            REQUIRE(driver.api().cuOccupancyMaxPotentialBlockSize(&grid, &block, function, nullptr, dynamic,
                                                                  0) == CUDA_SUCCESS);
            const LaunchConfig config = kernel.configuration_for(device, {&work, 1}, dynamic);
            CHECK(config.block == Dim3{static_cast<std::uint32_t>(block), 1, 1});
            CHECK(std::uint64_t{config.grid.x} * config.block.x >= work);
            if (dynamic == 0) blocks.push_back(config.block.x);
        }
    }
    std::sort(blocks.begin(), blocks.end());
    CHECK(std::unique(blocks.begin(), blocks.end()) == blocks.end());
}

TEST_CASE("a kernel has 100 KB of dynamic shared memory without asking for it first") {
    const testing::TestModule test(needs);
    const Device device(0);
    const Stream stream(device);
    const Kernel reverse = test.module.kernel("reverse");
    const std::vector<float> values = testing::counting(25'600);
    const DeviceBuffer x = testing::on_device(stream, values);
    ArgumentPack arguments(reverse.signature(device));
    arguments.set(0, testing::floats(x));
    arguments.set(1, testing::integer(25'600));
    LaunchConfig config;
    config.block.x = 256;
    config.shared_bytes = 25'600 * 4;
    reverse.launch(stream, config, arguments);
    CHECK(testing::on_host(stream, x) == std::vector<float>(values.rbegin(), values.rend()));
}

TEST_CASE("more shared memory than there is beside the static part is refused, with both numbers") {
    const testing::TestModule test(needs);
    const Device device(0);
    const Stream stream(device);
    const Kernel reverse = test.module.kernel("reverse");
    const LoadedKernel& loaded = reverse.loaded(device);
    CHECK(loaded.static_shared_bytes == 1008);
    CHECK(loaded.limits.shared_bytes == device.limits().shared_bytes - 1008);
    ArgumentPack arguments(reverse.signature(device));
    arguments.set_null(0);
    arguments.set(1, testing::integer(0));
    LaunchConfig config;
    config.shared_bytes = loaded.limits.shared_bytes + 1;
    const std::uint64_t launches = testing::calls_of("cuLaunchKernelEx", [&] {
        try {
            reverse.launch(stream, config, arguments);
            FAIL("no error");
        } catch (const ArgumentError& error) {
            const std::string message = error.what();
            CHECK(message.find(std::to_string(config.shared_bytes)) != message.npos);
            CHECK(message.find(std::to_string(loaded.limits.shared_bytes)) != message.npos);
            CHECK(message.find("besides the 1008 that it declares itself") != message.npos);
        }
    });
    CHECK(launches == 0);
}

TEST_CASE("a kernel whose parameters the compiler and the driver see differently is not launched") {
    const Device device(0);
    const std::shared_ptr<Image> image = image_of(
        ".visible .entry empty(.param .u32 n, .param .align 8 .b8 s[24], .param .u64 p)\n{\n    ret;\n}\n");
    const auto parameter = [](const char* name, std::uint32_t bytes, std::uint32_t alignment) {
        Parameter result;
        result.name = name;
        result.bytes = bytes;
        result.alignment = alignment;
        return result;
    };
    const auto load = [&](std::vector<Parameter> parameters) {
        Signature& signature = image->kernels[0].signature;
        signature.parameters = std::move(parameters);
        lay_out(signature);
        std::string message;
        try {
            Library(image, device).load(image->kernels[0], device);
        } catch (const Error& error) {
            message = error.what();
        }
        return message;
    };
    const Parameter n = parameter("n", 4, 4);
    const Parameter s = parameter("s", 24, 8);
    const Parameter p = parameter("p", 8, 8);
    CHECK(load({n, s, p}).empty());
    CHECK(load({n, parameter("s", 24, 4), p}).find("'s' 24 bytes at 4, and the driver 24 bytes at 8") !=
          std::string::npos);
    CHECK(load({n, parameter("s", 16, 8), p}).find("'s' 16 bytes at 8") != std::string::npos);
    CHECK(load({n, s}).find("report this") != std::string::npos);
    CHECK_FALSE(load({n, s, p, parameter("q", 8, 8)}).empty());
}
