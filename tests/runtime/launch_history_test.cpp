// The blame for a fault on a device that does not report the launch, as on a GPU.
#include <string>

#include <doctest/doctest.h>

#include <bascule/runtime/faults/launch_history.hpp>

#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

namespace {

/// Two kernels, launched as if from lines of a program.
struct Launches {
    void launch(const Kernel& kernel, const std::string& place) {
        ArgumentPack args(kernel.signature());
        args.set(0, floats(buffer));
        kernel.launch(stream, {.grid = {1}, .block = {1}}, args, {}, LaunchSite::of(place));
    }
    /// The blame as the first call after a fault would find it.
    static std::string blamed(const std::string& kernel = "") {
        forget_blame(0);
        const std::string found = blame(0, kernel);
        forget_blame(0);
        return found;
    }

    TestModule program{"__global__ void one(float* p) { *p = 1; } __global__ void two(float* p) { *p = 2; }"};
    Kernel one = program.module.kernel("one"), two = program.module.kernel("two");
    Stream stream;
    DeviceBuffer buffer{4};
};

bool names(const std::string& text, const char* place) { return text.find(place) != std::string::npos; }

}  // namespace

TEST_CASE("only launches that were not waited for are suspects, the oldest first") {
    Launches l;
    synchronize(Device::current());
    l.launch(l.one, "a.py:1: done()");
    l.stream.ref().synchronize();
    CHECK(Launches::blamed().empty());
    l.launch(l.one, "a.py:2: second()");
    l.launch(l.two, "a.py:3: third()");
    const std::string blamed = Launches::blamed();
    CAPTURE(blamed);
    CHECK_FALSE(names(blamed, "a.py:1"));
    CHECK(names(blamed, "most likely the first of these, which had not been waited for:\n  kernel 'one'"));
    CHECK(blamed.find("a.py:2") < blamed.find("a.py:3"));
    CHECK(names(blamed, "synchronise_launches"));
    l.stream.ref().synchronize();
}

TEST_CASE("a record of the kernel's own leaves the launches of that kernel alone") {
    Launches l;
    synchronize(Device::current());
    l.launch(l.one, "b.py:2: second()");
    l.launch(l.two, "b.py:3: third()");
    const std::string blamed = Launches::blamed("two");
    CHECK(blamed.find("It was most likely kernel 'two' on stream ") == 0);
    CHECK(names(blamed, "launched at b.py:3: third()."));
    l.stream.ref().synchronize();
}
