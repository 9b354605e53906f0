#include <dlfcn.h>
#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/driver/driver.hpp>

#include "child.hpp"

using namespace bascule;
using testing::ChildResult;
using testing::run_child;

namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

ChildResult choose(const std::string& choice, const std::string& fake = "") {
    Variables variables{{"BASCULE_DEVICE", choice}, {"BASCULE_EMULATED_DEVICES", "1"}};
    if (!fake.empty()) {
        variables.emplace_back("FAKE_DRIVER", fake);
        variables.emplace_back("LD_LIBRARY_PATH", FAKE_DRIVER_DIRECTORY);
    }
    return run_child("driver", variables);
}

}  // namespace

TEST_CASE("emulated_takes_the_emulated_device_even_where_a_driver_is_installed") {
    const ChildResult child = choose("emulated", "works");
    CHECK(child.exit_code == 0);
    CHECK(child.says("emulated=1 devices=1"));
    CHECK(child.says("libbascule_emulator.so reason=\n"));
}

TEST_CASE("auto_takes_the_driver_where_it_reports_a_device") {
    for (const char* choice : {"auto", ""}) {
        const ChildResult child = choose(choice, "works");
        CHECK(child.exit_code == 0);
        CHECK(child.says("emulated=0 devices=1 version=13000"));
    }
}

TEST_CASE("auto_falls_back_where_the_driver_has_no_device_and_says_why") {
    for (const char* fake : {"no_device", "zero_devices"}) {
        const ChildResult child = choose("auto", fake);
        CHECK(child.exit_code == 0);
        CHECK(child.says("emulated=1"));
        CHECK(child.says("reports no CUDA device"));
    }
}

TEST_CASE("auto_falls_back_where_the_driver_is_the_toolkits_stub") {
    const ChildResult child = choose("auto", "stub");
    CHECK(child.exit_code == 0);
    CHECK(child.says("emulated=1"));
    CHECK(child.says("is the CUDA toolkit's stub"));
}

TEST_CASE("auto_never_hides_a_driver_that_fails") {
    const ChildResult child = choose("auto", "broken");
    CHECK(child.exit_code == 1);
    CHECK(
        child.says("CudaError 803: initialising the CUDA driver failed: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"));
}

TEST_CASE("a_driver_before_12_0_is_refused_with_the_function_it_lacks") {
    const ChildResult child = choose("auto", "old");
    CHECK(child.exit_code == 1);
    CHECK(child.says("LibraryError"));
    CHECK(child.says("is for CUDA 11.8 and lacks cuLibraryLoadData"));
    CHECK(child.says("needs a driver for CUDA 12.0 or newer"));
}

TEST_CASE("cuda_is_an_error_where_there_is_no_device_and_says_how_to_do_without") {
    const ChildResult child = choose("cuda", "no_device");
    CHECK(child.exit_code == 1);
    CHECK(child.says("LibraryError: BASCULE_DEVICE=cuda asks for a GPU"));
    CHECK(child.says("libcuda.so.1"));
    CHECK(child.says("set BASCULE_DEVICE=emulated to run without a GPU"));
}

TEST_CASE("a_file_that_is_no_library_is_an_error_rather_than_a_missing_driver") {
    const auto directory = std::filesystem::path(FAKE_DRIVER_DIRECTORY) / "broken";
    std::filesystem::create_directories(directory);
    std::ofstream(directory / "libcuda.so.1") << std::string(4096, 'x');
    const ChildResult child =
        run_child("driver", Variables{{"BASCULE_DEVICE", "auto"}, {"LD_LIBRARY_PATH", directory}});
    CHECK(child.exit_code == 1);
    CHECK(child.says("LibraryError"));
}

TEST_CASE("without_a_libcuda_auto_emulates_and_cuda_is_an_error") {
    if (dlopen("libcuda.so.1", RTLD_LAZY) != nullptr) {
        MESSAGE("this machine has a driver: nothing to see here");
        return;
    }
    const ChildResult child = choose("auto");
    CHECK(child.exit_code == 0);
    CHECK(child.says("reason=no libcuda.so.1 was found"));
    const ChildResult strict = choose("cuda");
    CHECK(strict.exit_code == 1);
    CHECK(strict.says("no libcuda.so.1 was found (tried: libcuda.so.1"));
}

TEST_CASE("another_word_for_BASCULE_DEVICE_is_refused") {
    const ChildResult child = choose("gpu");
    CHECK(child.exit_code == 1);
    CHECK(child.says("BASCULE_DEVICE is 'gpu', which is none of cuda, emulated and auto"));
}

TEST_CASE("an_error_names_what_was_done_the_code_and_its_name") {
    const Driver& driver = Driver::get();
    try {
        driver.check({CUDA_ERROR_INVALID_VALUE, "cuMemAlloc"}, "allocating");
        FAIL("check did not throw");
    } catch (const CudaError& error) {
        const std::string message = error.what();
        CHECK(message.rfind("allocating failed: CUDA_ERROR_INVALID_VALUE (1): ", 0) == 0);
        CHECK(error.code() == 1);
        CHECK(error.details().code_name == "CUDA_ERROR_INVALID_VALUE");
        CHECK(error.details().call == "cuMemAlloc");
        CHECK(error.details().doing == "allocating");
    }
}

TEST_CASE("a_fault_is_reported_with_its_kernel_and_says_that_the_context_is_lost") {
    const ChildResult child = run_child("fault");
    CHECK(child.exit_code == 0);  // despite the fault, the process exits successfully
    CHECK(child.says("first: "));
    CHECK(child.says("CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
    CHECK(child.says("past"));
    CHECK(child.says("Restart the process."));
    CHECK_FALSE(child.says("bascule.emulated"));  // advice for Python
    CHECK(child.says("second: "));
    CHECK_FALSE(child.says("nothing happened"));
}
