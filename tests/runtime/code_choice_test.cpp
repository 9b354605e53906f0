#include <string>

#include <cuda.h>
#include <doctest/doctest.h>

#include <bascule/runtime/kernels/library.hpp>

using namespace bascule;

namespace {

bool cubin(const char* code, const char* device) {
    return runs_on(CodeForm::cubin, parse_arch(code), parse_arch(device));
}
bool ptx(const char* code, const char* device) {
    return runs_on(CodeForm::ptx, parse_arch(code), parse_arch(device));
}

}  // namespace

TEST_CASE("machine_code_runs_within_its_major_version_on_the_same_or_a_newer_minor_one") {
    CHECK(cubin("sm_80", "sm_80"));
    CHECK(cubin("sm_80", "sm_89"));
    CHECK_FALSE(cubin("sm_86", "sm_80"));
    CHECK_FALSE(cubin("sm_80", "sm_90"));
    CHECK_FALSE(cubin("sm_80", "sm_87"));  // Orin: compatible only with itself
    CHECK_FALSE(cubin("sm_87", "sm_89"));
    CHECK(cubin("sm_87", "sm_87"));
}

TEST_CASE("ptx_runs_on_everything_newer") {
    CHECK(ptx("compute_75", "sm_80"));
    CHECK(ptx("compute_80", "sm_120"));
    CHECK_FALSE(ptx("compute_90", "sm_89"));
}

TEST_CASE("the_suffix_a_means_that_architecture_alone_and_f_its_family") {
    for (const auto runs : {&cubin, &ptx}) {
        CHECK(runs("sm_90a", "sm_90"));
        CHECK_FALSE(runs("sm_90a", "sm_100"));
        CHECK(runs("sm_100f", "sm_100"));
        CHECK(runs("sm_100f", "sm_103"));
        CHECK_FALSE(runs("sm_103f", "sm_100"));
        CHECK_FALSE(runs("sm_100f", "sm_120"));
        CHECK_FALSE(runs("sm_100f", "sm_110"));
        CHECK(runs("sm_120f", "sm_121"));
    }
}

TEST_CASE("a_conflict_of_versions_names_driver_NVRTC_and_cure") {
    CHECK(version_conflict({13, 0}, {13, 0}).empty());
    CHECK(version_conflict({12, 9}, {13, 0}).empty());
    const std::string major = version_conflict({13, 5}, {12, 4});
    CHECK(major.find("for CUDA 12.4, and loads no code of NVRTC 13.5") != std::string::npos);
    CHECK(major.find("`pip install nvidia-cuda-nvrtc-cu12 ") != std::string::npos);
    const std::string minor = version_conflict({13, 5}, {13, 0});
    CHECK(minor.find("for CUDA 13.0, and loads machine code of NVRTC 13.5 but not its PTX") !=
          std::string::npos);
    CHECK(minor.find("\"nvidia-cuda-nvrtc==13.0.*\"") != std::string::npos);
}

TEST_CASE("each_code_of_a_refusal_has_its_own_advice") {
    for (const int code : {200, 209, 222, 227}) {
        CAPTURE(code);
        CHECK(advice_for_refusal(code, "13.5", 12040) == version_conflict({13, 5}, {12, 4}));
        CHECK(advice_for_refusal(code, "13.0", 13000).empty());
    }
    CHECK(
        advice_for_refusal(CUDA_ERROR_JIT_COMPILATION_DISABLED, "13.0", 13000).find("CUDA_DISABLE_PTX_JIT") !=
        std::string::npos);
    CHECK(advice_for_refusal(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "13.0", 13000)
              .find("NVIDIA_DRIVER_CAPABILITIES") != std::string::npos);
    CHECK(advice_for_refusal(CUDA_ERROR_INVALID_PTX, "13.5", 12040).empty());
}

TEST_CASE("a log of warnings and notes names no error") {
    CHECK_FALSE(names_an_error(""));
    CHECK_FALSE(names_an_error("ptxas warning : Too big maxrregcount value specified, will be ignored\n"));
    CHECK_FALSE(names_an_error("info    : 0 bytes gmem\n\nptxas info    : Compiling entry function 'k'\n"));
    CHECK(names_an_error("ptxas warning : x\nerror   : Undefined reference to 'twice' in 'a.ptx'\n"));
    CHECK(names_an_error("ptxas fatal   : Ptx assembly aborted due to errors"));
    CHECK(names_an_error("k.ptx: line 3: an instruction that nobody knows"));
}
