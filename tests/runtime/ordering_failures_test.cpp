// Rules 8 to 10: every driver call that a launch with two producers makes fails in turn.
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <bascule/interface/error.hpp>
#include <bascule/runtime/lifetime.hpp>

#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

namespace {

/// Which call of a function fails, counted from 0.
struct Failing {
    std::string function;
    int number = 0;
};

std::optional<Failing> failing;
int calls = 0;
DriverFunctions real;

bool fails(const char* function) {
    return failing && failing->function == function && calls++ == failing->number;
}

CUresult record(CUevent event, CUstream stream) {
    return fails("cuEventRecord") ? CUDA_ERROR_UNKNOWN : real.cuEventRecord(event, stream);
}

CUresult wait(CUstream stream, CUevent event, unsigned int flags) {
    return fails("cuStreamWaitEvent") ? CUDA_ERROR_UNKNOWN : real.cuStreamWaitEvent(stream, event, flags);
}

CUresult launch(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
    return fails("cuLaunchKernelEx") ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
                                     : real.cuLaunchKernelEx(config, function, parameters, extra);
}

/// The driver's table with the three above in it, for as long as it lives. No other thread launches
/// meanwhile.
class FailingDriver {
  public:
    FailingDriver() : table_(const_cast<DriverFunctions&>(Driver::get().api())) {
        real = table_;
        table_.cuEventRecord = &record;
        table_.cuStreamWaitEvent = &wait;
        table_.cuLaunchKernelEx = &launch;
    }
    ~FailingDriver() {
        table_ = real;
        failing.reset();
    }
    FailingDriver(const FailingDriver&) = delete;
    FailingDriver& operator=(const FailingDriver&) = delete;

  private:
    DriverFunctions& table_;
};

int released = 0;

struct Fixture {
    TestModule program{
        "__global__ void add(const float* x, const float* y, float* z, int n) {"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;"
        "    if (i < n) z[i] = x[i] + y[i];"
        "}"};
    Kernel kernel = program.module.kernel("add");
    Device device{0};
    DeviceBuffer x{256}, y{256}, z{256};
    Stream launch_stream, p, q;
    std::map<std::uint64_t, std::string> names{
        {launch_stream.ref().handle(), "C"}, {p.ref().handle(), "p"}, {q.ref().handle(), "q"}};

    void launch_once() {
        ArgumentPack args(kernel.signature(device));
        args.set(0, floats(x, p.ref().handle()));
        args.set(1, floats(y, q.ref().handle()));
        args.set(2, floats(z));
        args.set(3, integer(64));
        const Owner owner{&released, [](void* count) noexcept { ++*static_cast<int*>(count); }};
        kernel.launch(launch_stream, {.grid = {1}, .block = {64}}, args, {&owner, 1});
    }

    /// What reached the driver when one call failed, and how often the host waited for the stream.
    struct Outcome {
        std::string order;
        std::uint64_t host_waits = 0;
        std::string message;
    };

    Outcome with(Failing which) {
        launch_once();  // events and code are there now
        launch_stream.ref().synchronize();
        const FailingDriver driver;
        failing = std::move(which);
        calls = 0;
        const Trace trace;
        Outcome outcome;
        outcome.host_waits = calls_of("cuStreamSynchronize", [&] {
            try {
                launch_once();
            } catch (const CudaError& error) {
                outcome.message = error.what();
            }
        });
        outcome.order = trace.spelled(names);
        return outcome;
    }
};

}  // namespace

TEST_CASE("rule 8: a record or a wait that fails before the launch stops it") {
    Fixture f;
    for (const auto& [failure, order] : std::vector<std::pair<Failing, std::string>>{
             {{"cuEventRecord", 0}, ""},
             {{"cuStreamWaitEvent", 0}, "R(e1,p)"},
             {{"cuEventRecord", 1}, "R(e1,p) W(e1,C)"},
             {{"cuStreamWaitEvent", 1}, "R(e1,p) W(e1,C) R(e1,q)"},
         }) {
        CAPTURE(failure.function);
        CAPTURE(failure.number);
        const Fixture::Outcome outcome = f.with(failure);
        CHECK(outcome.order == order);
        CHECK(outcome.host_waits == 0);
        CHECK(outcome.message.find("CUDA_ERROR_UNKNOWN") != std::string::npos);
        // Which argument's stream it is: the first for 0, the second for 1.
        CHECK(outcome.message.find(failure.number == 0 ? "argument 1" : "argument 2") != std::string::npos);
    }
}

TEST_CASE("rule 9: no fence follows a launch that fails") {
    Fixture f;
    const Fixture::Outcome outcome = f.with({"cuLaunchKernelEx", 0});
    CHECK(outcome.order == "R(e1,p) W(e1,C) R(e1,q) W(e1,C)");
    CHECK(outcome.host_waits == 0);
    CHECK(outcome.message.find("launching kernel 'add'") != std::string::npos);
}

TEST_CASE("rule 10: when any part of the fence fails the host has waited for the launch") {
    Fixture f;
    const std::string launched = "R(e1,p) W(e1,C) R(e1,q) W(e1,C) L(C)";
    for (const auto& [failure, order] : std::vector<std::pair<Failing, std::string>>{
             {{"cuEventRecord", 2}, launched},
             {{"cuStreamWaitEvent", 2}, launched + " R(e1,C)"},
             {{"cuStreamWaitEvent", 3}, launched + " R(e1,C) W(e1,p)"},
         }) {
        CAPTURE(failure.function);
        CAPTURE(failure.number);
        const Fixture::Outcome outcome = f.with(failure);
        CHECK(outcome.order == order);
        CHECK(outcome.host_waits == 1);
        CHECK_FALSE(outcome.message.empty());
        CHECK(f.launch_stream.ref().query());
    }
}

TEST_CASE("rules 8 to 10: events are used again and owners are kept until the stream is done") {
    Fixture f;
    for (const Failing& failure : {Failing{"cuEventRecord", 1}, Failing{"cuStreamWaitEvent", 1},
                                   Failing{"cuLaunchKernelEx", 0}, Failing{"cuStreamWaitEvent", 3}}) {
        CAPTURE(failure.function);
        f.launch_once();
        f.launch_stream.ref().synchronize();
        released = 0;
        const std::uint64_t made = calls_of("cuEventCreate", [&] { f.with(failure); });
        CHECK(made == 0);
        CHECK(calls_of("cuEventCreate", [&] { f.launch_once(); }) == 0);
        f.launch_stream.ref().synchronize();
        CHECK(released == 3);  // the launch before the failure, the failed one, the one after
    }
}
