// Launches of clusters: which are accepted, how many fit, and the errors of other architectures.
#include <string>

#include <doctest/doctest.h>

#include "client.hpp"

using client::Device;

namespace {

const std::string text = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry any(.param .u64 p) {
.reg .b64 %p, %at; .reg .b32 %r, %n; ld.param.u64 %p, [p]; mov.u32 %n, %ctaid.x; mul.wide.u32 %at, %n, 4;
add.u64 %p, %p, %at; mov.u32 %r, %cluster_nctarank; st.global.u32 [%p], %r; ret; }
.visible .entry two(.param .u64 p) .explicitcluster .reqnctapercluster 2, 1, 1 {
.reg .b64 %p, %at; .reg .b32 %r, %n; ld.param.u64 %p, [p]; mov.u32 %n, %ctaid.x; mul.wide.u32 %at, %n, 4;
add.u64 %p, %p, %at; mov.u32 %r, %cluster_nctarank; st.global.u32 [%p], %r; ret; }
.visible .entry open(.param .u64 p) .explicitcluster { ret; }
.visible .entry few(.param .u64 p) .maxclusterrank 4 { ret; }
)";

struct Clusters {
    explicit Clusters(const char* architecture = "90")
        : library(client::Library::Environment{{"BASCULE_EMULATED_ARCH", architecture}}), device(library) {
        loaded = library.cuLibraryLoadData(&code, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    }
    CUkernel kernel(const char* name) {
        CUkernel found = nullptr;
        REQUIRE(library.cuLibraryGetKernel(&found, code, name) == CUDA_SUCCESS);
        return found;
    }
    CUlaunchConfig config(unsigned blocks, unsigned cluster, unsigned threads = 32, unsigned shared = 0) {
        attribute = {};
        attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attribute.value.clusterDim = {cluster, 1, 1};
        return {blocks,
                1,
                1,
                threads,
                1,
                1,
                shared,
                nullptr,
                cluster == 0 ? nullptr : &attribute,
                cluster == 0 ? 0u : 1u};
    }
    CUresult launch(const char* name, unsigned blocks, unsigned cluster) {
        const CUlaunchConfig how = config(blocks, cluster);
        void* parameters[] = {&out};
        return library.cuLaunchKernelEx(&how, reinterpret_cast<CUfunction>(kernel(name)), parameters,
                                        nullptr);
    }
    int attribute_of(const char* name, CUfunction_attribute which) {
        int value = -1;
        REQUIRE(library.cuKernelGetAttribute(&value, which, kernel(name), 0) == CUDA_SUCCESS);
        return value;
    }

    client::Library library;
    Device device;
    CUlibrary code = nullptr;
    CUresult loaded = CUDA_SUCCESS;
    CUlaunchAttribute attribute{};
    CUdeviceptr out = device.floats(64, 0.0F);
};

}  // namespace

TEST_CASE("a launch gives clusters, or the kernel does") {
    Clusters clusters;
    REQUIRE(clusters.loaded == CUDA_SUCCESS);
    CHECK(clusters.launch("any", 8, 0) == CUDA_SUCCESS);
    CHECK(clusters.launch("any", 8, 8) == CUDA_SUCCESS);
    CHECK(clusters.launch("any", 8, 3) == CUDA_ERROR_INVALID_CLUSTER_SIZE);    // does not divide the grid
    CHECK(clusters.launch("any", 32, 16) == CUDA_ERROR_INVALID_CLUSTER_SIZE);  // more than the portable size
    CHECK(clusters.library.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1,
                                                clusters.kernel("any"), 0) == CUDA_SUCCESS);
    CHECK(clusters.attribute_of("any", CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) == 1);
    CHECK(clusters.launch("any", 32, 16) == CUDA_SUCCESS);
    CHECK(clusters.launch("any", 34, 17) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    CHECK(clusters.launch("two", 8, 0) == CUDA_SUCCESS);
    CHECK(clusters.launch("two", 8, 2) == CUDA_SUCCESS);
    CHECK(clusters.launch("two", 8, 4) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    CHECK(clusters.launch("two", 7, 0) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    CHECK(clusters.launch("open", 8, 0) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    CHECK(clusters.launch("open", 8, 1) == CUDA_SUCCESS);
    CHECK(clusters.launch("few", 8, 4) == CUDA_SUCCESS);
    CHECK(clusters.launch("few", 8, 8) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    CHECK(clusters.attribute_of("two", CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH) == 2);
    CHECK(clusters.attribute_of("any", CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH) == 0);
    CHECK(clusters.attribute_of("open", CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET) == 1);
    CHECK(clusters.attribute_of("any", CU_FUNC_ATTRIBUTE_BINARY_VERSION) == 90);
}

TEST_CASE("how many clusters fit follows from the blocks of all multiprocessors") {
    Clusters clusters;
    auto* any = reinterpret_cast<CUfunction>(clusters.kernel("any"));
    int found = -1;
    CUlaunchConfig config = clusters.config(8, 4, 1024);
    REQUIRE(clusters.library.cuOccupancyMaxActiveClusters(&found, any, &config) == CUDA_SUCCESS);
    CHECK(found == 8 * 2 / 4);  // two blocks of 1024 threads on each of 8 multiprocessors
    REQUIRE(clusters.library.cuOccupancyMaxPotentialClusterSize(&found, any, &config) == CUDA_SUCCESS);
    CHECK(found == 8);
    // If a block uses all of a multiprocessor's shared memory, one block fits on each.
    CHECK(clusters.library.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 227 * 1024,
                                                clusters.kernel("any"), 0) == CUDA_SUCCESS);
    config = clusters.config(8, 4, 256, 227 * 1024);
    REQUIRE(clusters.library.cuOccupancyMaxActiveClusters(&found, any, &config) == CUDA_SUCCESS);
    CHECK(found == 2);
}

TEST_CASE("a launch records the event of a programmatic dependency") {
    Clusters clusters;
    auto& api = clusters.library;
    CUevent event = nullptr, timed = nullptr;
    REQUIRE(api.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
    REQUIRE(api.cuEventCreate(&timed, 0) == CUDA_SUCCESS);
    const CUstream first = clusters.device.stream(), second = clusters.device.stream();
    for (const auto id :
         {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT}) {
        CUlaunchConfig config = clusters.config(8, 1);
        clusters.attribute = {};
        clusters.attribute.id = id;
        config.hStream = first;
        const auto launch = [&](CUevent with) {
            clusters.attribute.value.programmaticEvent.event = with;  // first in both events' structs
            void* parameters[] = {&clusters.out};
            return api.cuLaunchKernelEx(&config, reinterpret_cast<CUfunction>(clusters.kernel("any")),
                                        parameters, nullptr);
        };
        CHECK(launch(timed) == CUDA_ERROR_INVALID_VALUE);
        CHECK(launch(nullptr) == CUDA_ERROR_INVALID_HANDLE);
        REQUIRE(launch(event) == CUDA_SUCCESS);
        CHECK(api.cuStreamWaitEvent(second, event, 0) == CUDA_SUCCESS);
        std::uint32_t word = 0;
        CHECK(api.cuMemcpyDtoHAsync(&word, clusters.out, 4, second) == CUDA_SUCCESS);
        CHECK(api.cuStreamSynchronize(second) == CUDA_SUCCESS);
        CHECK(word == 1);
        CHECK(api.cuEventQuery(event) == CUDA_SUCCESS);
    }
}

TEST_CASE("older architectures have no clusters") {
    Clusters clusters("80");
    CHECK(clusters.loaded == CUDA_ERROR_INVALID_PTX);
    Device& device = clusters.device;
    CUlaunchConfig config = clusters.config(8, 2);
    int found = -1;
    CHECK(device.api.cuOccupancyMaxActiveClusters(&found, device.kernel("increment"), &config) ==
          CUDA_ERROR_NOT_SUPPORTED);
    CHECK(device.api.cuOccupancyMaxPotentialClusterSize(&found, device.kernel("increment"), &config) ==
          CUDA_ERROR_NOT_SUPPORTED);
}
