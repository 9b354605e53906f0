// Captures are identified by the driver's ids, because streams join and leave them without a call of Bascule.
#include <algorithm>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/interface/errors/wording.hpp>
#include <bascule/jit/process/never_destroyed.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/streams/stream.hpp>
#include <bascule/runtime/streams/stream_capture.hpp>

namespace bascule {
namespace {

using Status = CaptureState::Status;

std::string unordered() {
    return advice("pass bascule.as_cuda_array(x, sync=False)", "pass it without a stream");
}

/// A bascule::Graph that is being captured.
struct Noted {
    const NotedCapture* capture = nullptr;
    std::uint64_t id = 0;
    GraphNeeds* needs = nullptr;
    std::thread::id thread;
};

struct CaptureRegistry {
    std::mutex mutex;
    std::vector<Noted> captures;

    GraphNeeds* needs_of(std::uint64_t id) noexcept {
        const auto found = std::ranges::find(captures, id, &Noted::id);
        return found == captures.end() ? nullptr : found->needs;
    }
    /// The needs of the capture that the calling thread began last.
    GraphNeeds* needs_in_this_thread() noexcept {
        const auto found = std::find_if(captures.rbegin(), captures.rend(), [](const Noted& each) {
            return each.thread == std::this_thread::get_id();
        });
        return found == captures.rend() ? nullptr : found->needs;
    }
};

/// Never destroyed, because operations at exit use it.
CaptureRegistry& capture_registry() { return never_destroyed<CaptureRegistry>(); }

std::string name_of(StreamRef stream) { return name_of_stream(stream.handle()); }

[[noreturn]] void fail(const Producer& producer, const Signature* signature, const std::string& message) {
    ArgumentError error(ArgumentError::Kind::value, message, {.field = "stream"});
    const auto index = static_cast<std::size_t>(producer.argument);
    if (signature == nullptr || index >= signature->parameters.size()) throw error;
    throw error.with_argument(producer.argument, signature->parameters[index].name);
}

std::string implicit_reason() {
    return fmt::format(
        "cannot be used while a blocking stream of its device is being captured into a graph, because it "
        "would be ordered with that stream. Capture a non-blocking stream ({}), or use another stream than "
        "the default one",
        advice("bascule.stream()", "bascule::Stream"));
}

// The codes that the driver would return.
constexpr CUresult implicit = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
constexpr CUresult invalidated = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
constexpr CUresult unsupported = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;

void require_usable(StreamRef stream, const CaptureState& state) {
    if (state.status == Status::implicit) {
        Driver::get().fail_as(implicit, fmt::format("{} {}.", name_of(stream), implicit_reason()),
                              "choosing a stream");
    }
    if (state.status == Status::invalidated) {
        Driver::get().fail_as(
            invalidated,
            fmt::format("the capture of {} was invalidated by something that captures do not allow. "
                        "End it, and begin again.",
                        name_of(stream)),
            "choosing a stream");
    }
}

bool has(const std::vector<Producer>& producers, const Producer& producer) {
    return std::ranges::any_of(
        producers, [&](const Producer& each) { return each.stream.same_stream(producer.stream); });
}

/// `naming` returns the stream's name for messages.
template <class Naming>
CaptureState ask(StreamRef stream, const Naming& naming) {
    const Driver& driver = Driver::get();
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    DriverResult code = driver.api().cuStreamIsCapturing(stream.native(), &status);
    CaptureState state;
    cuuint64_t id = 0;
    if (code == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        code = driver.api().cuStreamGetCaptureInfo(stream.native(), &status, &id, nullptr, nullptr, nullptr);
    }
    if (code == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) {
        state.status = Status::implicit;
        return state;
    }
    if (code != CUDA_SUCCESS) {
        driver.check(code, fmt::format("asking whether {} is being captured", naming()));
    }
    if (status == CU_STREAM_CAPTURE_STATUS_INVALIDATED) state.status = Status::invalidated;
    if (status == CU_STREAM_CAPTURE_STATUS_ACTIVE) state = {Status::active, id};
    return state;
}

/// The context of `stream` must be current; `theirs` may belong to another device.
CaptureState capture_of(const Producer& producer, StreamRef theirs, StreamRef stream) {
    std::optional<ContextGuard> context;
    if (!(theirs.device() == stream.device())) context.emplace(theirs.context());
    return ask(theirs, [&] {
        return fmt::format("{}, which argument {} names,", doubtful_name_of_stream(producer.stream.handle),
                           producer.argument + 1);
    });
}

/// True if no stream is being captured, with one query for each. False otherwise, also after an error: the caller then
/// queries each stream again, with its name for the message. The context of `stream` must be current. False if a
/// producer is on another device.
bool nothing_captured(StreamRef stream, std::span<const Producer> producers) noexcept {
    const auto here = [&](const Producer& producer) { return same_device(producer, stream); };
    return std::ranges::all_of(producers, here) && !may_be_captured(stream) &&
           std::ranges::all_of(producers, [&](const Producer& producer) {
               return !needs_wait(producer, stream) || !may_be_captured(stream_of(producer, stream));
           });
}

}  // namespace

CaptureState capture_of(StreamRef stream) {
    return ask(stream, [&] { return doubtful_name_of_stream(stream.handle()); });
}

bool is_capturing(StreamRef stream) noexcept {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult code = Driver::get().api().cuStreamIsCapturing(stream.native(), &status);
    return code == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ||
           (code == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE);
}

bool may_be_captured(StreamRef stream) noexcept {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult code = Driver::get().api().cuStreamIsCapturing(stream.native(), &status);
    return code != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

GraphNeeds::~GraphNeeds() { release(owners); }

NotedCapture::NotedCapture(std::uint64_t id, GraphNeeds& needs) {
    const std::lock_guard lock(capture_registry().mutex);
    capture_registry().captures.push_back({this, id, &needs, std::this_thread::get_id()});
    ongoing_.fetch_add(1);
}

NotedCapture::~NotedCapture() {
    const std::lock_guard lock(capture_registry().mutex);
    std::erase_if(capture_registry().captures, [&](const Noted& each) { return each.capture == this; });
    ongoing_.fetch_sub(1);
}

bool NotedCapture::in_this_thread() noexcept {
    if (!any()) return false;
    const std::lock_guard lock(capture_registry().mutex);
    return capture_registry().needs_in_this_thread() != nullptr;
}

void ProducersToOrder::sort(StreamRef stream, const Signature* signature) {
    found_no_capture_ = nothing_captured(stream, producers_);
    if (found_no_capture_) [[likely]]
        return;
    const CaptureState ours = capture_of(stream);
    require_usable(stream, ours);
    std::vector<Producer> outside;
    bool own_stream = false;
    for (const Producer& producer : producers_) {
        if (!needs_wait(producer, stream)) {
            own_stream = true;
            continue;
        }
        const StreamRef theirs = stream_of(producer, stream);
        const CaptureState state = capture_of(producer, theirs, stream);
        if (state.status == Status::implicit && ours.status == Status::active) {
            outside.push_back(producer);  // not used during the capture
            continue;
        }
        require_usable(theirs, state);
        if (state == ours) continue;
        if (ours.status == Status::none) {
            fail(producer, signature,
                 fmt::format("its stream {:#x} is being captured into a graph, and {}, where this would go, "
                             "is not: waiting would make it part of that graph. Use the array's stream for "
                             "this too{} and order it yourself. The capture goes on.",
                             producer.stream.handle, name_of(stream),
                             advice(" (stream=...)", "") + ", or " + unordered()));
        }
        if (state.status == Status::active) {
            fail(producer, signature,
                 fmt::format("its stream {:#x} is being captured into another graph than {}, and graphs "
                             "cannot wait for each other while they are captured. Use one capture for both, "
                             "or {} and order the graphs' launches yourself. Both captures go on.",
                             producer.stream.handle, name_of(stream), unordered()));
        }
        outside.push_back(producer);
    }
    if (ours.status != Status::active) return;
    const std::lock_guard lock(capture_registry().mutex);
    GraphNeeds* needs = capture_registry().needs_of(ours.id);
    if (needs != nullptr && own_stream) needs->own_stream = true;
    if (outside.empty()) return;
    if (needs == nullptr) {
        fail(outside.front(), signature,
             fmt::format("its stream {:#x} is not part of the capture that {} is in, so nothing in the graph "
                         "can wait for it. Let it wait for an event that was recorded in the capture, or "
                         "{} and order the graph's launches yourself. The capture goes on.",
                         outside.front().stream.handle, name_of(stream), unordered()));
    }
    inside_ = std::make_unique<std::vector<Producer>>();
    for (const Producer& producer : producers_) {
        const bool is_outside = has(outside, producer);
        std::vector<Producer>& list = is_outside ? needs->producers : *inside_;
        if (!is_outside || !has(list, producer)) list.push_back(producer);
    }
    producers_ = *inside_;
}

bool keep_for_graph(StreamRef stream, const Owners& owners, const CodeRef* code) noexcept {
    std::optional<CaptureState> state;
    try {
        const ContextGuard context(stream.context());
        state = capture_of(stream);
    } catch (...) {  // the query failed
    }
    if (state && state->status != Status::active) return false;
    OwnersForGraph all(owners);
    try {
        const std::lock_guard lock(capture_registry().mutex);
        // If the query failed, the thread's own graph takes the owners, since keeping them too long is harmless.
        GraphNeeds* needs =
            state ? capture_registry().needs_of(state->id) : capture_registry().needs_in_this_thread();
        if (needs == nullptr) return false;
        needs->code.add(code);
        append(needs->owners, all.get());
        all.transferred();
        return true;
    } catch (...) {  // out of memory: treat the stream like any other
        return false;
    }
}

void require_no_capture(Device device, const char* what) {
    if (!NotedCapture::in_this_thread()) return;
    Driver::get().fail_as(
        unsupported,
        fmt::format("{} waits for work of device {}, and this thread is capturing a graph, which "
                    "does not see that: the graph's launches would not wait. Wait before or after "
                    "`with graph:`. The capture goes on.",
                    what, device.ordinal()),
        "waiting for a device");
}

void require_no_capture_by_others(Device device) {
    const ContextGuard context(device.context());
    const std::vector<LivingStream> living = living_streams();
    const auto captured = std::ranges::find_if(living, [&](const LivingStream& each) {
        return each.stream.device() == device && may_be_captured_by_others(each.stream) &&
               is_capturing(each.stream);
    });
    // The driver tells whether a blocking stream that Bascule never saw is captured. Asking ends no capture.
    if (captured == living.end() && !is_capturing(StreamRef::legacy_default(device))) return;
    Driver::get().fail_as(
        unsupported,
        fmt::format(
            "synchronize waits for all work of device {}, and {} is being captured into a graph, which "
            "such a wait would invalidate. Wait for a stream ({}), or before or after the capture. The "
            "capture goes on.",
            device.ordinal(),
            captured == living.end() ? "a blocking stream of another library" : name_of(captured->stream),
            advice("stream.synchronize()", "Stream::synchronize")),
        "waiting for a device");
}

void require_no_capture(StreamRef stream, const char* what) {
    const ContextGuard context(stream.context());
    const CaptureState state = capture_of(stream);
    const auto refuse = [&](CUresult code, const std::string& why) {
        Driver::get().fail_as(code, fmt::format("{} waits for {}, {}", what, name_of(stream), why),
                              "waiting for a stream");
    };
    if (state.status == Status::implicit) refuse(implicit, fmt::format("which {}.", implicit_reason()));
    if (state.status != Status::none) {
        refuse(unsupported,
               "which is being captured into a graph: nothing of it runs before the graph is launched. Wait "
               "after the launch. The capture goes on.");
    }
    if (NotedCapture::in_this_thread()) {
        refuse(unsupported,
               "and this thread is capturing a graph, which does not record this wait: the graph's launches "
               "would not wait. Wait before or after `with graph:`. The capture goes on.");
    }
}

void require_loadable(std::optional<StreamRef> stream, const std::string& kernel) {
    bool capturing = NotedCapture::in_this_thread();
    if (!capturing && stream) {
        const ContextGuard context(stream->context());
        capturing = capture_of(*stream).status == Status::active;
    }
    if (!capturing) return;
    Driver::get().fail_as(
        unsupported,
        fmt::format("kernel '{}' is not loaded yet, and code cannot be loaded while a graph is "
                    "captured. Call kernel.prepare(...) with arguments of these types before the "
                    "capture (for what Bascule itself launches: do the same once before). The "
                    "capture goes on.",
                    kernel),
        "loading a kernel");
}

}  // namespace bascule
