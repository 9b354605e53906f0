// Traces from C++: times of operations, by events as on a GPU and as the emulated device reports them; launch hooks.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/faults/launch_history.hpp>
#include <bascule/runtime/kernels/launch_hooks.hpp>
#include <bascule/runtime/kernels/library.hpp>
#include <bascule/runtime/streams/observer.hpp>
#include <bascule/runtime/trace/device_times.hpp>
#include <bascule/runtime/trace/trace.hpp>

#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

namespace {

/// Makes copies. `ran`: when each ran on the device, by its number; `called`: when the host called the driver.
struct TimedCopies {
    std::unordered_map<std::uint64_t, TraceSpan> ran;
    std::vector<TraceSpan> called;

    TimedCopies(TimesFrom from, std::size_t count, std::size_t bytes) {
        const Stream stream;
        const DeviceBuffer a(bytes);
        const DeviceBuffer b(bytes);
        DeviceTimes times(from);
        const ContextGuard context(stream.ref().context());
        const DriverFunctions& api = Driver::get().api();
        for (std::size_t i = 0; i < count; ++i) {
            times.begin(i + 1, stream);
            TraceSpan call{trace_now(), 0};
            REQUIRE(api.cuMemcpyDtoDAsync(b.address(), a.address(), bytes, stream.ref().native()) ==
                    CUDA_SUCCESS);
            call.end = trace_now();
            called.push_back(call);
            times.end(i + 1, stream);
        }
        ran = times.finish();
    }
};

}  // namespace

TEST_CASE("the_emulated_device_tells_when_an_operation_ran") {
    const TimedCopies copies(TimesFrom::emulator, 20, 1 << 16);
    REQUIRE(copies.ran.size() == 20);
    for (std::uint64_t i = 1; i <= 20; ++i) {
        const TraceSpan ran = copies.ran.at(i);
        CHECK(ran.begin >= copies.called[i - 1].begin);  // an eager device runs it in the call
        CHECK(ran.end <= copies.called[i - 1].end);
        CHECK(ran.end >= ran.begin);
    }
}

TEST_CASE("timing_events_give_the_same_times_on_the_hosts_clock") {
    constexpr std::int64_t rounding = 100'000;  // ns: float milliseconds, calibration
    const TimedCopies copies(TimesFrom::events, 20, 1 << 16);
    REQUIRE(copies.ran.size() == 20);
    for (std::uint64_t i = 1; i <= 20; ++i) {
        const TraceSpan ran = copies.ran.at(i);
        CHECK(ran.end >= ran.begin);
        CHECK(ran.begin <= copies.called[i - 1].end + rounding);
        CHECK(ran.end >= copies.called[i - 1].begin - rounding);
        if (i > 1) CHECK(ran.begin >= copies.ran.at(i - 1).begin);
    }
}

TEST_CASE("more_operations_than_events_are_kept_for_have_times_by_both_clocks") {
    for (const TimesFrom from : {TimesFrom::emulator, TimesFrom::events})
        CHECK(TimedCopies(from, 3000, 64).ran.size() == 3000);
}

TEST_CASE("an_operation_that_was_cancelled_has_no_times_and_its_number_goes_to_no_other") {
    const Stream stream;
    const DeviceBuffer buffer(64);
    for (const TimesFrom from : {TimesFrom::emulator, TimesFrom::events}) {
        DeviceTimes times(from);
        const ContextGuard context(stream.ref().context());
        times.begin(7, stream);
        times.cancel(7);
        REQUIRE(Driver::get().api().cuMemsetD8Async(buffer.address(), 1, 64, stream.ref().native()) ==
                CUDA_SUCCESS);
        CHECK(times.finish().empty());
    }
}

TEST_CASE("a_trace_has_the_launch_its_kernel_and_what_the_kernel_waited_for") {
    Addition addition;
    Trace trace({}, 100);
    CHECK_THROWS_AS(Trace(), Error);
    const std::vector<float> values(64, 1.0F);
    copy_to_device(addition.p, addition.x.address(), values.data(), addition.x.bytes());
    ArgumentPack args(addition.kernel.signature());
    addition.set(args, addition.p.ref().handle(), 0, 0);
    addition.kernel.launch(addition.launch_stream, {.grid = {1}, .block = {64}}, args);
    trace.stop();
    CHECK_THROWS_AS(stop_trace(), Error);
    const std::vector<TraceRecord>& records = trace.recorded().records;
    const auto find = [&](CallKind kind) -> const TraceRecord& {
        const auto found = std::find_if(records.begin(), records.end(),
                                        [&](const TraceRecord& each) { return each.kind == kind; });
        REQUIRE(found != records.end());
        return *found;
    };
    const TraceRecord& copy = find(CallKind::copy_to_device);
    const TraceRecord& launched = find(CallKind::launch);
    CHECK(copy.bytes == 256);
    CHECK(launched.name == "launch add");
    CHECK(launched.after == std::vector{copy.operation});
    REQUIRE(copy.ran.has_value());
    REQUIRE(launched.ran.has_value());
    CHECK(launched.ran->begin >= copy.ran->end);
    CHECK(find(CallKind::wait).called.begin >= launched.called.begin);
}

TEST_CASE("a_trace_is_written_when_its_scope_ends_and_names_the_program_its_threads_and_its_streams") {
    const auto file = std::filesystem::temp_directory_path() / fmt::format("bascule-trace-{}.json", getpid());
    Addition addition;
    ArgumentPack args(addition.kernel.signature());
    addition.set(args, addition.p.ref().handle(), 0, 0);
    {
        const Trace trace(file);
        addition.kernel.launch(addition.launch_stream, {.grid = {1}, .block = {64}}, args);
    }
    std::ifstream input(file);
    const auto written = nlohmann::json::parse(input);
    CHECK(written["otherData"]["command"].get<std::string>().find("runtime_tests") != std::string::npos);
    CHECK(written["otherData"]["device 0"] == Device(0).name());
    std::vector<std::string> rows;
    std::vector<nlohmann::json> kernels;
    for (const auto& event : written["traceEvents"]) {
        if (event["name"] == "thread_name") rows.push_back(event["args"]["name"]);
        if (event.value("cat", "") == "kernel") kernels.push_back(event);
    }
    CHECK(rows == std::vector<std::string>{
                      "main thread", fmt::format("stream {:#x}", addition.launch_stream.ref().handle())});
    REQUIRE(kernels.size() == 1);
    CHECK(kernels[0]["args"]["block"] == nlohmann::json{64, 1, 1});
    std::filesystem::remove(file);
}

TEST_CASE("a_trace_that_cannot_be_written_says_where_and_why") {
    Trace trace("missing/run.json");
    CHECK_THROWS_WITH_AS(trace.stop(),
                         "the trace could not be written to missing/run.json: No such file or directory.",
                         Error);
    trace.stop();  // has no effect: the trace has ended
}

TEST_CASE("a_hook_of_cpp_is_told_of_launches_until_it_is_removed") {
    Addition addition;
    ArgumentPack args(addition.kernel.signature());
    addition.set(args, 0, 0, 0);
    const LaunchConfig config{.grid = {2}, .block = {32}, .shared_bytes = 16};
    std::vector<std::string> told;
    const std::uint64_t number = add_launch_hook(
        {.before = [&](const LaunchInfo& launch) { told.push_back("before " + launch.kernel.names->name); },
         .after =
             [&](const LaunchInfo& launch) { told.push_back("after " + to_string(launch.config.grid)); }});
    addition.kernel.launch(addition.launch_stream, config, args);
    remove_launch_hook(number);
    addition.kernel.launch(addition.launch_stream, config, args);
    CHECK(told == std::vector<std::string>{"before add", "after " + to_string(config.grid)});
    CHECK_FALSE(watches_anything());
}

TEST_CASE("a_hook_that_throws_before_a_launch_refuses_it_and_its_owners_are_released") {
    Addition addition;
    ArgumentPack args(addition.kernel.signature());
    addition.set(args, addition.p.ref().handle(), 0, 0);
    const std::uint64_t number = add_launch_hook(
        {.before = [](const LaunchInfo&) { throw std::runtime_error("refused"); }, .after = {}});
    int released = 0;
    void* counter = &released;
    const OperationTrace trace;
    CHECK_THROWS_WITH(addition.kernel.launch(addition.launch_stream, {.grid = {1}, .block = {64}}, args,
                                             Owners(&counter, 1, &count_releases<int>, 0)),
                      "refused");
    remove_launch_hook(number);
    CHECK(released == 1);
    CHECK(trace.spelled(addition.names).empty());
}
