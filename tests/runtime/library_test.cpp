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

/// A program in PTX, as if the compiler had written it.
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
