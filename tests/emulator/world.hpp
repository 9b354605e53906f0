// A device under a policy, for tests that hold under every policy.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "client.hpp"

namespace client {

inline const std::vector<std::string> policies = {"eager", "lazy", "threads", "random:20261121"};

/// The library under a policy with a number of devices: shared by all tests that do not break it.
inline Library& library_under(const std::string& policy, int devices = 1) {
    static auto& made = *new std::map<std::pair<std::string, int>, std::unique_ptr<Library>>;
    auto& library = made[{policy, devices}];
    if (library == nullptr) {
        library = std::make_unique<Library>(
            Library::Environment{{"BASCULE_EMULATED_SCHEDULE", policy.c_str()},
                                 {"BASCULE_EMULATED_DEVICES", std::to_string(devices).c_str()}});
    }
    return *library;
}

/// Device 0 under a policy, with what tests of order need. It releases everything that it makes.
struct World {
    explicit World(const std::string& policy, int devices = 1) : World(library_under(policy, devices)) {}
    explicit World(Library& library) : device(library), api(library) {}

    Device device;
    Library& api;

    /// A float in pinned memory, whose value the host can read without a driver call that runs pending work.
    float* pinned(float value = 0.0F) {
        auto* made = static_cast<float*>(pinned_bytes(sizeof(float)));
        *made = value;
        return made;
    }
    void* pinned_bytes(std::size_t bytes) {
        void* host = nullptr;
        REQUIRE(api.cuMemHostAlloc(&host, bytes, 0) == CUDA_SUCCESS);
        return host;
    }
    CUresult increment(float* value, CUstream stream) {
        return device.launch("increment", stream, reinterpret_cast<CUdeviceptr>(value));
    }
    CUresult twice(float* value, CUstream stream) {
        return device.launch("twice", stream, reinterpret_cast<CUdeviceptr>(value));
    }
    /// Makes later work on `later` wait for the current work on `earlier`.
    void order(CUstream earlier, CUstream later) {
        const CUevent event = device.event();
        CHECK(api.cuEventRecord(event, earlier) == CUDA_SUCCESS);
        CHECK(api.cuStreamWaitEvent(later, event, 0) == CUDA_SUCCESS);
    }
    CUcontext context() const {
        CUcontext current = nullptr;
        api.cuCtxGetCurrent(&current);
        return current;
    }
};

/// Runs a test under each policy.
template <class Claim>
void under_each_policy(const Claim& claim, int devices = 1) {
    for (const std::string& policy : policies) {
        CAPTURE(policy);
        World world(policy, devices);
        claim(world);
    }
}

/// A stream that is busy until it is released, under any policy, with a kernel that another thread waits for. A host
/// function would keep the whole driver busy.
class Busy {
  public:
    Busy(World& world, CUstream stream)
        : meeting_(static_cast<unsigned*>(world.pinned_bytes(2 * sizeof(unsigned)))) {
        meeting_[0] = 0;
        meeting_[1] = 2;  // the kernel and `release`
        forcing_ = std::thread([this, &world, stream, context = world.context()] {
            world.api.cuCtxPushCurrent(context);
            world.device.launch("meet", stream, reinterpret_cast<CUdeviceptr>(meeting_));
            world.api.cuStreamSynchronize(stream);
            world.api.cuCtxPopCurrent(nullptr);
        });
        while (std::atomic_ref(meeting_[0]).load() == 0) std::this_thread::yield();
    }
    ~Busy() { release(); }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

    void release() {
        if (!forcing_.joinable()) return;
        std::atomic_ref(meeting_[0]).fetch_add(1);
        forcing_.join();
    }

  private:
    unsigned* meeting_;
    std::thread forcing_;
};

}  // namespace client
