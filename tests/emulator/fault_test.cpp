// Faults: asynchronous, sticky for their context, and without effect on others, under every policy.
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "world.hpp"

using client::Library;
using client::World;

namespace {

struct Case {
    const char* kernel;
    bool misaligned, outside;
    CUresult code;
};
constexpr std::array cases = {
    Case{"trap", false, false, CUDA_ERROR_ILLEGAL_INSTRUCTION},
    Case{"increment", true, false, CUDA_ERROR_MISALIGNED_ADDRESS},
    Case{"increment", false, true, CUDA_ERROR_ILLEGAL_ADDRESS},
};

}  // namespace

// CUDA's documentation of these errors: "any further CUDA work will return the same error". The launch succeeds, and
// all later calls return the code.
TEST_CASE("a fault comes with a later call, with its code, in every thread, again and again") {
    for (const std::string& policy : client::policies) {
        for (const Case& each : cases) {
            CAPTURE(policy);
            CAPTURE(each.kernel);
            Library library({{"BASCULE_EMULATED_SCHEDULE", policy.c_str()}});
            World world(library);
            const CUstream p = world.device.stream();
            const CUstream q = world.device.stream();
            const CUevent event = world.device.event();
            const CUdeviceptr x = world.device.floats(4, 0.0F);
            const CUdeviceptr at = each.misaligned ? x + 1 : each.outside ? x + 16 : x;
            CHECK(world.device.launch(each.kernel, p, at) == CUDA_SUCCESS);
            CHECK(library.cuStreamSynchronize(p) == each.code);

            const auto context = world.context();
            const auto check_all = [&] {
                CUdeviceptr unused = 0;
                float value = 0.0F;
                CHECK(library.cuStreamSynchronize(p) == each.code);
                CHECK(library.cuStreamSynchronize(q) == each.code);
                CHECK(library.cuCtxSynchronize() == each.code);
                CHECK(library.cuStreamQuery(q) == each.code);
                CHECK(library.cuEventQuery(event) == each.code);
                CHECK(library.cuEventSynchronize(event) == each.code);
                CHECK(library.cuEventRecord(event, q) == each.code);
                CHECK(library.cuStreamWaitEvent(q, event, 0) == each.code);
                CHECK(library.cuMemAlloc(&unused, 4) == each.code);
                CHECK(library.cuMemAllocAsync(&unused, 4, q) == each.code);
                CHECK(library.cuMemcpyDtoH(&value, x, 4) == each.code);
                CHECK(library.cuMemsetD8Async(x, 0, 4, q) == each.code);
                CHECK(world.device.launch("increment", q, x) == each.code);
            };
            check_all();
            std::thread([&] {
                library.cuCtxPushCurrent(context);
                check_all();
                library.cuCtxPopCurrent(nullptr);
            }).join();
            CHECK(library.report().find(each.kernel) != std::string::npos);
        }
    }
}

TEST_CASE("a free that waits for the kernel returns its fault, and frees the memory") {
    for (const std::string& policy : client::policies) {
        CAPTURE(policy);
        Library library({{"BASCULE_EMULATED_SCHEDULE", policy.c_str()}});
        World world(library);
        const CUstream p = world.device.stream();
        const CUdeviceptr x = world.device.floats(4, 0.0F), y = world.device.floats(4, 0.0F);
        CHECK(world.device.launch(cases[0].kernel, p, x + 16) == CUDA_SUCCESS);
        CHECK(library.cuMemFree(y) == cases[0].code);
        CHECK(library.cuMemFree(y) != CUDA_SUCCESS);
    }
}

TEST_CASE("a fault knows its launch among others of the kernel, and its report outlives other failures") {
    for (const std::string& policy : client::policies) {
        CAPTURE(policy);
        Library library({{"BASCULE_EMULATED_SCHEDULE", policy.c_str()}});
        World world(library);
        const CUstream p = world.device.stream();
        const CUstream q = world.device.stream();
        const CUdeviceptr x = world.device.floats(4, 0.0F);
        std::uint64_t site = 0;
        for (const CUdeviceptr address : {x, x, x + 16, x}) {
            *library.next_site() = ++site;
            world.device.launch("increment", address == x ? p : q, address);
            CHECK(*library.next_site() == 0);
        }
        CHECK(library.cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
        CUlibrary unused = nullptr;
        library.cuLibraryLoadData(&unused, "no PTX", nullptr, nullptr, 0, nullptr, nullptr, 0);

        std::string text(library.last_fault(nullptr, 0), '\0');
        library.last_fault(text.data(), text.size() + 1);
        const auto fault = nlohmann::json::parse(text);
        CHECK(fault["report"].get<std::string>().find("kernel 'increment'") != std::string::npos);
        CHECK(fault["kernel"] == "increment");
        CHECK(fault["site"] == 3);
        CHECK(fault["stream"] == reinterpret_cast<std::uint64_t>(q));
        CHECK(fault["lacks"] == "");
    }
}

TEST_CASE("a fault is returned by each synchronisation in its context, on whatever stream or event") {
    for (const std::string& policy : client::policies) {
        CAPTURE(policy);
        Library library({{"BASCULE_EMULATED_SCHEDULE", policy.c_str()}});
        World world(library);
        const CUstream p = world.device.stream();
        const CUstream q = world.device.stream();
        const CUevent event = world.device.event();
        CHECK(world.device.launch("trap", p, 0) == CUDA_SUCCESS);
        const CUresult recorded = library.cuEventRecord(event, p);
        const CUresult waits = library.cuStreamWaitEvent(q, event, 0);
        CHECK(library.cuStreamSynchronize(q) == CUDA_ERROR_ILLEGAL_INSTRUCTION);
        for (const CUresult answer : {recorded, waits}) {  // the fault has happened by then, or not
            CHECK((answer == CUDA_SUCCESS || answer == CUDA_ERROR_ILLEGAL_INSTRUCTION));
        }
    }
}

TEST_CASE("polling ends with the fault's code") {
    for (const std::string& policy : client::policies) {
        CAPTURE(policy);
        Library library({{"BASCULE_EMULATED_SCHEDULE", policy.c_str()}});
        World world(library);
        const CUstream p = world.device.stream();
        world.device.launch("trap", p, 0);
        CUresult answer = CUDA_ERROR_NOT_READY;
        while ((answer = library.cuStreamQuery(p)) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
        CHECK(answer == CUDA_ERROR_ILLEGAL_INSTRUCTION);
    }
}

TEST_CASE("what comes after a fault does not run, and other contexts and devices go on") {
    for (const std::string& policy : client::policies) {
        CAPTURE(policy);
        Library library({{"BASCULE_EMULATED_SCHEDULE", policy.c_str()}, {"BASCULE_EMULATED_DEVICES", "2"}});
        World world(library);
        float* x = world.pinned();  // in the context without a fault
        float* y = world.pinned();
        std::array<CUcontext, 2> broken = {};
        REQUIRE(library.cuDevicePrimaryCtxRetain(&broken[0], 1) == CUDA_SUCCESS);
        REQUIRE(library.cuCtxCreate(&broken[1], nullptr, 0, 0) == CUDA_SUCCESS);
        library.cuCtxPopCurrent(nullptr);
        for (const CUcontext context : broken) {
            library.cuCtxPushCurrent(context);
            CHECK(world.device.launch("trap", nullptr, 0) == CUDA_SUCCESS);
            world.increment(x, nullptr);
            CHECK(library.cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_INSTRUCTION);
            library.cuCtxPopCurrent(nullptr);
        }
        CHECK(*x == 0.0F);
        CHECK(world.increment(y, nullptr) == CUDA_SUCCESS);
        CHECK(library.cuCtxSynchronize() == CUDA_SUCCESS);
        CHECK(*y == 1.0F);
        CHECK(library.cuCtxDestroy(broken[1]) == CUDA_SUCCESS);
    }
}

// cuDevicePrimaryCtxReset makes a device usable again in the same process.
TEST_CASE("a reset clears a fault and frees all memory, and what is launched then works") {
    for (const std::string& policy : client::policies) {
        CAPTURE(policy);
        Library library({{"BASCULE_EMULATED_SCHEDULE", policy.c_str()}});
        CUcontext context = nullptr;
        library.cuDevicePrimaryCtxRetain(&context, 0);
        library.cuCtxSetCurrent(context);
        const auto free_memory = [&] {
            std::size_t free = 0;
            std::size_t total = 0;
            CHECK(library.cuMemGetInfo(&free, &total) == CUDA_SUCCESS);
            return free;
        };
        const std::size_t free_at_first = free_memory();
        for (int round = 0; round < 3; ++round) {
            {
                World world(library);
                CUdeviceptr lost = 0;
                REQUIRE(library.cuMemAlloc(&lost, 1 << 20) == CUDA_SUCCESS);
                world.device.launch("trap", nullptr, 0);
                CHECK(library.cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_INSTRUCTION);
            }
            CHECK(library.cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_INSTRUCTION);
            CHECK(library.cuDevicePrimaryCtxReset(0) == CUDA_SUCCESS);
            CHECK(library.cuCtxSynchronize() == CUDA_SUCCESS);
            CHECK(free_memory() == free_at_first);
            World world(library);
            float* x = world.pinned();
            CHECK(world.increment(x, nullptr) == CUDA_SUCCESS);
            CHECK(library.cuCtxSynchronize() == CUDA_SUCCESS);
            CHECK(*x == 1.0F);
        }
    }
}

TEST_CASE("what a broken context holds can be given back") {
    for (const std::string& policy : client::policies) {
        CAPTURE(policy);
        Library library({{"BASCULE_EMULATED_SCHEDULE", policy.c_str()}});
        World world(library);
        CUstream p = nullptr;
        CUevent event = nullptr;
        library.cuStreamCreate(&p, 0);
        library.cuEventCreate(&event, 0);
        world.device.launch("trap", p, 0);
        CHECK(library.cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_INSTRUCTION);
        CHECK(library.cuEventDestroy(event) == CUDA_SUCCESS);
        CHECK(library.cuStreamDestroy(p) == CUDA_SUCCESS);
    }
}

TEST_CASE("of two faults in one context the first one stays, with its report") {
    static std::vector<std::unique_ptr<Library>> kept;  // threads may still wait in them when the test ends
    for (int round = 0; round < 20; ++round) {
        kept.push_back(
            std::make_unique<Library>(Library::Environment{{"BASCULE_EMULATED_SCHEDULE", "threads"}}));
        Library& library = *kept.back();
        World world(library);
        const CUdeviceptr x = world.device.floats(4, 0.0F);
        const CUstream p = world.device.stream();
        const CUstream q = world.device.stream();
        world.device.launch("trap", p, x);
        world.device.launch("increment", q, x + 1);
        const CUresult code = library.cuCtxSynchronize();
        CHECK(library.cuCtxSynchronize() == code);
        const bool trapped = code == CUDA_ERROR_ILLEGAL_INSTRUCTION;
        CHECK((trapped || code == CUDA_ERROR_MISALIGNED_ADDRESS));
        CHECK((library.report().find("kernel 'trap'") != std::string::npos) == trapped);
    }
}
