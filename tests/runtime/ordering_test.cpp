// Tests the driver calls of a launch with producers, and rule 12 of runtime/streams/ORDER.md. tests/python/ordering
// tests the other rules.
#include <doctest/doctest.h>

#include <bascule/runtime/kernels/library.hpp>
#include <bascule/runtime/streams/ordering.hpp>

#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

TEST_CASE("a warmed launch makes two operations a foreign stream, one more, and one query") {
    Addition f;
    f.kernel.loaded(f.device);
    const auto launch = [&] {
        ArgumentPack args(f.kernel.signature(f.device));
        f.set(args, f.p.ref().handle(), f.q.ref().handle(), 0);
        f.kernel.launch(f.launch_stream, {.grid = {1}, .block = {64}}, args);
    };
    launch();
    const auto calls = [&](const char* function) { return calls_of(function, launch); };
    CHECK(calls("cuEventRecord") == 3);
    CHECK(calls("cuStreamWaitEvent") == 4);
    CHECK(calls("cuLaunchKernelEx") == 1);
    CHECK(calls("cuCtxGetCurrent") == 1);
    for (const char* none :
         {"cuCtxSetCurrent", "cuEventCreate", "cuEventDestroy", "cuEventQuery", "cuStreamQuery",
          "cuStreamSynchronize", "cuPointerGetAttributes", "cuKernelGetAttribute"}) {
        CAPTURE(none);
        CHECK(calls(none) == 0);
    }
}

TEST_CASE("rule 12: a stream of another device is waited for even if its handle is the launch stream's") {
    const Device device(0);
    const StreamRef legacy = StreamRef::legacy_default(device);
    CHECK_FALSE(needs_wait({{1}}, legacy));
    CHECK_FALSE(needs_wait({{0}}, legacy));
    CHECK_FALSE(needs_wait({{1, 0}}, legacy));
    CHECK(needs_wait({{1, 1}}, legacy));
    CHECK(needs_wait({{2}}, legacy));
}
