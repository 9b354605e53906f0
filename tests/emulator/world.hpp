// A device under a policy, for claims that hold under every one of them.
#pragma once

#include <future>
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

/// The library under a policy with a number of devices: one for all tests that do not break it.
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

/// Device 0 under a policy, with what tests of order need. Whatever it makes goes with it.
struct World {
    explicit World(const std::string& policy, int devices = 1) : World(library_under(policy, devices)) {}
    explicit World(Library& library) : device(library), api(library) {}

    Device device;
    Library& api;

    /// A float in pinned memory, which shows its value without forcing anything.
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
    /// What comes on `later` from now on waits for what is on `earlier`.
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

/// Runs a claim under each policy.
template <class Claim>
void under_each_policy(const Claim& claim, int devices = 1) {
    for (const std::string& policy : policies) {
        CAPTURE(policy);
        World world(policy, devices);
        claim(world);
    }
}

/// A stream that is busy until it is let go, under any policy: a host function that another thread forces.
class Busy {
  public:
    Busy(World& world, CUstream stream)
        : forcing_([this, &world, stream, context = world.context()] {
              world.api.cuCtxPushCurrent(context);
              world.api.cuLaunchHostFunc(
                  stream,
                  [](void* self) {
                      static_cast<Busy*>(self)->begun_.set_value();
                      static_cast<Busy*>(self)->released_.get_future().wait();
                  },
                  this);
              world.api.cuStreamSynchronize(stream);
              world.api.cuCtxPopCurrent(nullptr);
          }) {
        begun_.get_future().wait();
    }
    ~Busy() { release(); }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

    void release() {
        if (!forcing_.joinable()) return;
        released_.set_value();
        forcing_.join();
    }

  private:
    std::promise<void> begun_, released_;
    std::thread forcing_;
};

}  // namespace client
