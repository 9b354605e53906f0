// Rules 8 to 10 of runtime/streams/ORDER.md for all operations on device memory: whichever driver call fails, work is
// ordered or not begun.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <bascule/interface/arrays/array_views.hpp>
#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/driver/found_errors.hpp>
#include <bascule/runtime/elementwise/elementwise.hpp>
#include <bascule/runtime/graphs/graph.hpp>
#include <bascule/runtime/lifetime/lifetime.hpp>

#include "failing_driver.hpp"
#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

namespace {

constexpr std::size_t count = 64;
constexpr float before = -7;  // in every destination before an operation

const Module& program() {
    static const auto* module = new TestModule(
        "__global__ void set(float* out, float value) { out[threadIdx.x] = value + threadIdx.x; }__global__ "
        "void add(const float* x, const float* y, float* z) {    z[threadIdx.x] = x[threadIdx.x] + "
        "y[threadIdx.x];}");
    return module->module;
}

/// Two producers, and their arrays: x is read, z is written, y is read by launches only. Results are in memory that the
/// host can read at any time, without calling the driver.
struct Scene {
    Device home;  // of x and its producer
    Device device;
    Stream c{device}, p{home}, q{device};
    DeviceBuffer x{count * sizeof(float), home}, y{count * sizeof(float), device},
        z{count * sizeof(float), device, MemoryKind::managed};
    DeviceBuffer scratch{count * sizeof(float), device};
    DeviceBuffer pinned{count * sizeof(float), device, MemoryKind::pinned};
    std::vector<float> pageable = std::vector<float>(count, before);
    std::unique_ptr<Graph> graph;

    Scene(Device of_x, Device of_launch) : home(of_x), device(of_launch) {}

    ArrayView source() const { return named(x, p); }
    ArrayView destination() const { return named(z, q); }
    ArrayView named(const DeviceBuffer& buffer, const Stream& stream) const {
        ArrayView view = floats(buffer, stream.ref().handle());
        if (!(stream.ref().device() == device)) view.stream.device = stream.ref().device().ordinal();
        return view;
    }
    std::vector<Producer> source_producer() const { return {{producer_stream(p, device)}}; }

    /// Work of other libraries on their own streams.
    static void set(const Stream& stream, const DeviceBuffer& buffer, float value) {
        const Kernel kernel = program().kernel("set");
        ArgumentPack args(kernel.signature(stream.ref().device()));
        args.set(0, floats(buffer));
        args.set(1, real(value));
        kernel.launch(stream, {.grid = {1}, .block = {count}}, args);
    }
    void produce(float value) {
        set(p, x, value);
        set(q, y, 2 * value);
        set(q, z, before);
        std::fill_n(static_cast<float*>(pinned.host()), count, before);
        pageable.assign(count, before);
    }
    /// Work of the producers, issued directly after an operation: without order, it races with the operation.
    void go_on() const {
        set(p, x, 5000);
        const Kernel kernel = program().kernel("add");
        ArgumentPack args(kernel.signature(device));
        for (const int input : {0, 1}) args.set(input, floats(z));
        args.set(2, floats(scratch));
        kernel.launch(q, {.grid = {1}, .block = {count}}, args);
    }
    void finish() const {
        for (const Stream* stream : {&c, &p, &q}) stream->ref().synchronize();
    }
};

using Work = std::function<void(Scene&, const Owners&)>;
using Read = std::function<std::vector<float>(const Scene&)>;

/// An operation that Bascule orders. `result` reads what it wrote; `expected` computes that from the value in x.
struct Operation {
    std::string name;
    Work enqueue;
    Read result;
    std::function<float(std::size_t i, float value)> expected;
    Work prepare = [](Scene&, const Owners&) {};  // runs before calls are made to fail
};

float as_set(std::size_t i, float value) { return value + static_cast<float>(i); }

std::vector<float> what_lies_in(const DeviceBuffer& buffer) {
    const auto* values = static_cast<const float*>(buffer.host());
    return {values, values + count};
}

std::vector<float> what_z_is(const Scene& scene) { return what_lies_in(scene.z); }

ArrayView every_second(const ArrayView& view) {
    IndexEntry entry;
    entry.kind = IndexEntry::Kind::slice;
    entry.step = 2;
    return index_array(view, std::vector{entry});
}

const float nine = 9;

const std::vector<Operation>& operations() {
    static const std::vector<Operation> all = {
        {"a copy on the device",
         [](Scene& s, const Owners& owners) { copy_elements(s.c, s.destination(), s.source(), owners); },
         &what_z_is, &as_set},
        {"a fill",
         [](Scene& s, const Owners& owners) {
             fill_elements(s.c, s.destination(), std::as_bytes(std::span(&nine, 1)), owners);
         },
         &what_z_is, [](std::size_t, float) { return nine; }},
        {"a fill of every second element",
         [](Scene& s, const Owners& owners) {
             fill_elements(s.c, every_second(s.destination()), std::as_bytes(std::span(&nine, 1)), owners);
         },
         &what_z_is, [](std::size_t i, float) { return i % 2 == 0 ? nine : before + static_cast<float>(i); }},
        {"a copy to pinned memory",
         [](Scene& s, const Owners& owners) {
             copy_to_host(s.c, s.pinned.host(), s.x.address(), s.x.bytes(), s.source_producer(), owners);
         },
         [](const Scene& s) { return what_lies_in(s.pinned); }, &as_set},
        {"a copy to the host",
         [](Scene& s, const Owners& owners) {
             copy_to_host(s.c, s.pageable.data(), s.x.address(), s.x.bytes(), s.source_producer(), owners);
         },
         [](const Scene& s) { return s.pageable; }, &as_set},
        {"a copy from the host",
         [](Scene& s, const Owners& owners) {
             const std::vector<float> nines(count, nine);
             const std::vector<Producer> producers = {{{s.q.ref().handle()}}};
             copy_to_device(s.c, s.z.address(), nines.data(), s.z.bytes(), producers, owners);
         },
         &what_z_is, [](std::size_t, float) { return nine; }},
        {"a copy from pinned memory",
         [](Scene& s, const Owners& owners) {
             std::fill_n(static_cast<float*>(s.pinned.host()), count, nine);
             const std::vector<Producer> producers = {{{s.q.ref().handle()}}};
             copy_to_device(s.c, s.z.address(), s.pinned.host(), s.z.bytes(), producers, owners);
         },
         &what_z_is, [](std::size_t, float) { return nine; }},
    };
    return all;
}

/// Operations whose kernels run on x's device, because x must be on the launch's device.
const std::vector<Operation>& operations_on_one_device() {
    static const std::vector<Operation> all = {
        {"a copy of every second element",
         [](Scene& s, const Owners& owners) {
             copy_elements(s.c, every_second(s.destination()), every_second(s.source()), owners);
         },
         &what_z_is,
         [](std::size_t i, float value) { return i % 2 == 0 ? as_set(i, value) : as_set(i, before); }},
        {"a graph, captured and launched",
         [](Scene& s, const Owners& owners) {
             const std::unique_ptr<Graph> graph = std::move(s.graph);
             copy_elements(graph->stream(), s.destination(), s.source(), owners);
             graph->end();
             graph->launch(s.c);
         },
         &what_z_is, &as_set,
         [](Scene& s, const Owners&) {
             s.graph = std::make_unique<Graph>(s.device);
             s.graph->begin();
         }},
        {"a launch of a graph",
         [](Scene& s, const Owners&) {
             const std::unique_ptr<Graph> last_launch = std::move(s.graph);
             last_launch->launch(s.c);
         },
         &what_z_is, &as_set,
         [](Scene& s, const Owners& owners) {
             s.graph = std::make_unique<Graph>(s.device);
             s.graph->begin();
             copy_elements(s.graph->stream(), s.destination(), s.source(), owners);
             s.graph->end();
         }},
        {"a conversion",
         [](Scene& s, const Owners& owners) {
             const ArrayView integers = view_as(s.destination(), parse_typestr("<i4"), nullptr);
             convert_elements(s.c, integers, s.source(), owners);
         },
         [](const Scene& s) {
             const auto* integers = static_cast<const std::int32_t*>(s.z.host());
             std::vector<float> values = what_z_is(s);
             if (values[0] != before) values.assign(integers, integers + count);
             return values;
         },
         &as_set},
        {"a launch",
         [](Scene& s, const Owners& owners) {
             const Kernel kernel = program().kernel("add");
             ArgumentPack args(kernel.signature(s.device));
             args.set(0, s.source());
             args.set(1, s.named(s.y, s.q));
             args.set(2, s.destination());
             kernel.launch(s.c, {.grid = {1}, .block = {count}}, args, owners);
         },
         &what_z_is, [](std::size_t i, float value) { return as_set(i, value) + as_set(i, 2 * value); }},
    };
    return all;
}

CUcontext current() {
    CUcontext context = nullptr;
    FailingDriver::real().cuCtxGetCurrent(&context);
    return context;
}

bool is_complete(const Scene& scene, const Operation& operation, float value) {
    const std::vector<float> result = operation.result(scene);
    for (std::size_t i = 0; i < count; ++i) {
        if (result[i] != operation.expected(i, value)) return false;
    }
    return true;
}

bool is_untouched(const Scene& scene, const Operation& operation) {
    const std::vector<float> result = operation.result(scene);
    for (std::size_t i = 0; i < count; ++i) {
        if (result[i] != before && result[i] != as_set(i, before)) return false;
    }
    return true;
}

/// Records whether an operation was complete when its owner was released.
struct Witness {
    const Scene& scene;
    const Operation& operation;
    float value;
    int released = 0;
    bool complete = false;
};

void give_up(void* const* objects, std::size_t) noexcept {
    auto& witness = *static_cast<Witness*>(*objects);
    ++witness.released;
    witness.complete = is_complete(witness.scene, witness.operation, witness.value);
}

/// The result of an operation in which one call failed.
struct Outcome {
    std::string failed;
    std::string message;  // of the error, or empty
    std::string call;     // the call that the error names
    bool raised = false;
    bool enqueued = false;  // the operation reached the stream
    bool context_changed = false;
};

/// True if work ran on `stream`. Captured work counts only when its graph is launched.
bool any_work(const std::vector<BasculeEmulatedOperation>& trace, StreamRef stream) {
    for (const BasculeEmulatedOperation& each : trace) {
        const bool works = each.kind == BASCULE_EMULATED_LAUNCH || each.kind == BASCULE_EMULATED_COPY ||
                           each.kind == BASCULE_EMULATED_FILL || each.kind == BASCULE_EMULATED_GRAPH_LAUNCH;
        if (works && each.stream == stream.handle()) return true;
    }
    return false;
}

Outcome try_once(Scene& scene, const Operation& operation, const Owner& owner, int fails) {
    const EmulatedFunctions& emulated = *Driver::get().emulated_functions();
    Outcome outcome;
    operation.prepare(scene, owner);
    emulated.trace(1);
    {
        const FailingDriver driver(fails);
        const CUcontext context = current();
        try {
            operation.enqueue(scene, owner);
        } catch (const CudaError& error) {
            outcome.raised = true;
            outcome.message = error.what();
            outcome.call = error.details().call;
        }
        outcome.failed = FailingDriver::failed();
        outcome.context_changed = current() != context;
        FailingDriver::real().cuCtxSetCurrent(context);
    }
    std::vector<BasculeEmulatedOperation> trace(emulated.trace_read(nullptr, 0));
    emulated.trace_read(trace.data(), trace.size());
    emulated.trace(0);
    outcome.enqueued = any_work(trace, scene.c);
    return outcome;
}

/// Makes every call of `operation` fail in turn. `owned` is the size in bytes of its owner; a large size makes each
/// operation record a marker.
void fail_every_call(Scene& scene, const Operation& operation, std::uint64_t owned = 0) {
    CAPTURE(operation.name);
    CAPTURE(owned);
    const auto do_it = [&] {
        operation.prepare(scene, {});
        operation.enqueue(scene, {});
    };
    do_it();  // compiles, loads, makes events
    scene.finish();
    int tried = 0;
    for (int call = 0;; ++call) {
        CAPTURE(call);
        const auto value = static_cast<float>(100 + call);
        scene.produce(value);
        Witness witness{scene, operation, value};
        const Outcome outcome = try_once(scene, operation, {&witness, &give_up, owned}, call);
        CAPTURE(outcome.failed);
        CAPTURE(outcome.message);
        scene.go_on();
        scene.c.ref().synchronize();
        CHECK(witness.released == 1);
        if (outcome.enqueued) {
            CHECK(witness.complete);
            CHECK(is_complete(scene, operation, value));
        } else {
            CHECK(outcome.raised);
            scene.finish();
            CHECK(is_untouched(scene, operation));
        }
        if (outcome.raised) {
            CHECK(outcome.message.find("CUDA_ERROR_ILLEGAL_STATE") != std::string::npos);
            CHECK(outcome.call == outcome.failed);
        }
        if (outcome.failed != "cuCtxSetCurrent") CHECK_FALSE(outcome.context_changed);
        scene.finish();
        CHECK(take_findings().empty());
        if (outcome.failed.empty()) break;
        ++tried;
    }
    CHECK(tried >= 4);
    // No event is leaked: repeating the operation creates at most one.
    const std::uint64_t made = calls_of("cuEventCreate", [&] {
        do_it();
        scene.finish();
    });
    CHECK(made <= 1);
    CHECK(owners_held() == 0);
}

/// Searches for races even if the environment does not request it.
class Watched {
  public:
    Watched() : before_(set_checks(find_checks("races"))) {}
    ~Watched() { set_checks(before_); }
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;

  private:
    std::uint32_t before_;
};

}  // namespace

constexpr std::uint64_t enough_for_a_marker = std::uint64_t{64} << 20;

TEST_CASE("rules 8 to 10: whichever call of the driver fails, what touches memory is ordered or not begun") {
    const Watched watched;
    Scene scene{Device(0), Device(0)};
    for (const Operation& operation : operations()) fail_every_call(scene, operation);
    for (const Operation& operation : operations_on_one_device()) fail_every_call(scene, operation);
}

TEST_CASE(
    "rule 15: whichever call fails where a marker is recorded, owners are kept until the work is done") {
    const Watched watched;
    Scene scene{Device(0), Device(0)};
    for (const Operation& operation : operations()) fail_every_call(scene, operation, enough_for_a_marker);
    for (const Operation& operation : operations_on_one_device())
        fail_every_call(scene, operation, enough_for_a_marker);
}

TEST_CASE("rules 8 to 10: the same when the array and its producer are on another device") {
    REQUIRE(Device::count() >= 2);
    const Watched watched;
    Scene scene{Device(1), Device(0)};
    for (const std::uint64_t owned : {std::uint64_t{0}, enough_for_a_marker}) {
        for (const Operation& operation : operations()) fail_every_call(scene, operation, owned);
    }
}
