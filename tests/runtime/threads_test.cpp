// Sixty-four threads use everything that is shared at once: modules, the cache, streams, events, owners. Every result
// is checked. BASCULE_THREADS_SECONDS is the duration (default 2); intended mainly for ThreadSanitizer.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <bascule/jit/program/program.hpp>
#include <bascule/runtime/faults/launch_history.hpp>
#include <bascule/runtime/kernels/occupancy.hpp>
#include <bascule/runtime/lifetime/lifetime.hpp>
#include <bascule/runtime/streams/event.hpp>

#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

namespace {

constexpr int thread_count = 64;
constexpr std::size_t elements = 96;

constexpr const char* threads_text = R"(
__global__ void increment(float* p, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] += 1;
}
__global__ void count(unsigned long long* total) { atomicAdd(total, 1ull); }
template <int N> __global__ void add(float* p) { p[threadIdx.x] += N; }
)";

std::chrono::duration<double> duration() {
    const char* value = std::getenv("BASCULE_THREADS_SECONDS");
    return std::chrono::duration<double>(value == nullptr ? 2.0 : std::atof(value));
}

/// Shared by all threads.
struct Shared {
    TestModule program{threads_text};
    Kernel increment = program.module.kernel("increment");
    Kernel count = program.module.kernel("count");
    Kernel add = program.module.kernel("add");
    DeviceBuffer total{sizeof(std::uint64_t)};
    Stream stream;
    Event event;
    std::atomic<std::uint64_t> counted{0};
    std::atomic<std::uint64_t> kept{0}, released{0};
    std::atomic<std::uint64_t> rounds{0};
    std::mutex mutex;
    std::vector<std::string> failures;

    void fail(const std::string& what) {
        const std::lock_guard lock(mutex);
        failures.push_back(what);
    }
};

ArrayView longs(const DeviceBuffer& buffer) {
    RawInterface raw;
    raw.shape.push_back(static_cast<std::int64_t>(buffer.bytes() / 8));
    raw.typestr = "<u8";
    raw.pointer = buffer.address();
    return validate(raw);
}

/// One thread with its own stream and array, whose expected values it knows.
class Worker {
  public:
    Worker(Shared& shared, unsigned number)
        : shared_(shared), random_(number), buffer_(on_device(stream_, std::vector<float>(elements))) {}

    void run(std::chrono::steady_clock::time_point end) {
        const std::function<void()> actions[] = {
            [&] { launch(stream_); }, [&] { launch_elsewhere(); }, [&] { count(); },         [&] { copy(); },
            [&] { order(); },         [&] { instantiate(); },      [&] { compile_again(); }, [&] { look(); },
        };
        std::uniform_int_distribution<std::size_t> choice(0, std::size(actions) - 1);
        while (std::chrono::steady_clock::now() < end) {
            for (int i = 0; i < 16; ++i) actions[choice(random_)]();
            verify();
            shared_.rounds.fetch_add(1);
        }
    }

  private:
    void launch(StreamRef stream) {
        ArgumentPack args(shared_.increment.signature());
        args.set(0, floats(buffer_, stream_.ref().handle()));
        args.set(1, integer(static_cast<std::int64_t>(elements)));
        shared_.kept.fetch_add(1);
        const Owner owner{&shared_,
                          [](void* const* shared, std::size_t count) noexcept {
                              static_cast<Shared*>(*shared)->released.fetch_add(static_cast<int>(count));
                          },
                          1 << 20};
        shared_.increment.launch(stream, {.grid = {3}, .block = {32}}, args, owner,
                                 LaunchSite::of("line " + std::to_string(random_() % 8)));
        expected_ += 1;
    }

    /// Launches on a stream that is destroyed while its work may be pending.
    void launch_elsewhere() {
        const Stream stream;
        launch(stream);
    }

    void count() {
        ArgumentPack args(shared_.count.signature());
        args.set(0, longs(shared_.total));
        shared_.count.launch(shared_.stream, {.grid = {1}, .block = {1}}, args);
        shared_.counted.fetch_add(1);
    }

    void copy() {
        std::vector<float> values(elements);
        for (float& value : values) value = static_cast<float>(random_() % 1000);
        const DeviceBuffer buffer = on_device(stream_, values);
        if (on_host(stream_, buffer) != values) shared_.fail("a copy came back as something else");
    }

    void order() {
        shared_.event.ref().record(stream_);
        stream_.ref().wait(shared_.event);
        shared_.stream.ref().wait(shared_.event);
        shared_.event.ref().query();
    }

    void instantiate() {
        static constexpr const char* numbers[] = {"1", "2", "3", "4"};
        const std::size_t which = random_() % std::size(numbers);
        TemplateArguments given;
        given.positional.emplace_back(numbers[which]);
        const Kernel kernel = shared_.add.instantiate(given);
        ArgumentPack args(kernel.signature());
        args.set(0, floats(buffer_));
        kernel.launch(stream_, {.grid = {1}, .block = {static_cast<std::uint32_t>(elements)}}, args);
        expected_ += static_cast<float>(which + 1);
    }

    /// Compiles the same text as a new module, which hits the cache, and loads and unloads a library.
    void compile_again() {
        if (random_() % 8 != 0) return;
        TestModule program(threads_text);
        const Kernel kernel = program.module.kernel("increment");
        ArgumentPack args(kernel.signature());
        args.set(0, floats(buffer_));
        args.set(1, integer(static_cast<std::int64_t>(elements)));
        kernel.launch(stream_, {.grid = {3}, .block = {32}}, args);
        stream_.ref().synchronize();
        expected_ += 1;
    }

    void look() {
        const LoadedKernel& kernel = shared_.increment.loaded(Device(0));
        if (occupancy_of(kernel, Device(0), 128, 0).blocks == 0) shared_.fail("no block fits");
        if (attributes_of(kernel, Device(0)).registers == 0) shared_.fail("a kernel without registers");
    }

    void verify() {
        const std::vector<float> values = on_host(stream_, buffer_);
        if (values != std::vector<float>(elements, expected_)) {
            shared_.fail("element 0 is " + std::to_string(values[0]) + ", not " + std::to_string(expected_));
        }
        if (expected_ > 1e6F) {  // floats count exactly up to 2**24
            buffer_ = on_device(stream_, std::vector<float>(elements));
            expected_ = 0;
        }
    }

    Shared& shared_;
    std::mt19937 random_;
    Stream stream_;
    DeviceBuffer buffer_;
    float expected_ = 0;
};

}  // namespace

TEST_CASE("sixty-four threads launch, copy, record and make streams at once, and every result is right") {
    synchronize();
    Shared shared;
    const std::uint64_t zero = 0;
    copy_to_device(shared.stream, shared.total.address(), &zero, sizeof zero);
    shared.stream.ref().synchronize();
    const auto end = std::chrono::steady_clock::now() +
                     std::chrono::duration_cast<std::chrono::steady_clock::duration>(duration());
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < thread_count; ++i) {
        threads.emplace_back([&shared, end, i] {
            try {
                Worker(shared, i + 1).run(end);
            } catch (const std::exception& error) {
                shared.fail(error.what());
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    synchronize();
    std::uint64_t total = 0;
    copy_to_host(shared.stream, &total, shared.total.address(), sizeof total);
    CHECK(total == shared.counted);
    CHECK(shared.released == shared.kept);
    CHECK(owners_held() == 0);
    CHECK(shared.rounds >= thread_count);
    for (const std::string& failure : shared.failures) FAIL_CHECK(failure);
}
