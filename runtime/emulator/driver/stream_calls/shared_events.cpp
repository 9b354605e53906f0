// Events shared between processes: cuIpcGetEventHandle and cuIpcOpenEventHandle, and records and waits of such events.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "driver/call.hpp"
#include "driver/captures.hpp"
#include "driver/interruption.hpp"
#include "driver/shared_objects.hpp"
#include "streams/driver_lock.hpp"

namespace emulated::driver {
namespace {

using streams::SharedMark;

/// The content of a CUipcEventHandle.
struct EventHandle {
    static constexpr std::uint64_t magic = 0x4261'7363'756c'6532;

    std::uint64_t mark = magic;
    SharedFile file;
};
static_assert(sizeof(EventHandle) <= sizeof(CUipcEventHandle));

std::uint64_t inode_of(int descriptor) noexcept {
    struct stat facts = {};
    return fstat(descriptor, &facts) == 0 ? facts.st_ino : 0;
}

/// Waits until `done` returns true. Returns false if the context fails, the device is reset or the program does not
/// want to wait any more. In the last case, drops all pending work.
template <class Done>
bool wait_until(const Done& done, Context& context, std::uint64_t resets) {
    using namespace std::chrono;
    auto pause = microseconds(20);
    while (!done()) {
        if (!context.executes(resets)) return false;
        if (interrupted()) {
            Process::get().drop_pending();
            return false;
        }
        std::this_thread::sleep_for(pause);
        pause = std::min(2 * pause, microseconds(1000));
    }
    return true;
}

}  // namespace

SharedFile SharedFile::of(int descriptor) noexcept { return {getpid(), descriptor, inode_of(descriptor)}; }

bool SharedFile::is_own() const noexcept { return process == getpid(); }

int SharedFile::open() const {
    const std::string path = fmt::format("/proc/{}/fd/{}", process, descriptor);
    const int opened = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (opened >= 0 && inode_of(opened) == inode) return opened;
    if (opened >= 0) close(opened);
    Process::get().set_report(
        fmt::format("process {}, which made the handle, has ended, or belongs to another user", process));
    return -1;
}

bool is_newest_here(const Event& event) noexcept {
    return event.shared->newest() == event.newest_here.load(std::memory_order_relaxed);
}

void begin_shared_record(Event& event, const StreamTarget& target) {
    const auto mark = event.shared;
    std::uint64_t record = mark->begin();
    if (record == 0) {  // too many are pending, including our own, which may need this thread to run them
        target.context->graph.drain();
        const streams::DriverUnlocked waiting;
        const bool has_begun =
            wait_until([&] { return (record = mark->begin()) != 0; }, *target.context, Process::resets());
        require(has_begun, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    }
    event.newest_here.store(record, std::memory_order_relaxed);
    // Executed after a fault too, because other processes wait for it.
    target.context->graph.submit(*target.stream, [mark, record] { mark->finish(record); });
}

void wait_for_other_process(const Event& event, const StreamTarget& target) {
    const CaptureGate gate(target);
    if (gate.captures())
        return refuse(CUDA_ERROR_NOT_SUPPORTED, "a graph cannot wait for an event of another process");
    const std::uint64_t record = event.shared->newest();
    target.context->graph.submit(
        *target.stream, [mark = event.shared, record, context = target.context, resets = Process::resets()] {
            wait_until([&] { return mark->is_done(record); }, *context, resets);
        });
}

void wait_for_other_process(const Event& event, Context& context) {
    const streams::DriverUnlocked waiting;
    const std::uint64_t record = event.shared->newest();
    wait_until([&] { return event.shared->is_done(record); }, context, Process::resets());
}

/// "The event must have been created with the CU_EVENT_INTERPROCESS flag set."
EMULATED_CONTEXT_API(cuIpcGetEventHandle, 4010, CUipcEventHandle* out, CUevent handle) {
    require(out != nullptr);
    const auto event = object_of<Event>(handle);
    require(event->shared != nullptr, CUDA_ERROR_INVALID_HANDLE);
    EventHandle shared;
    shared.file = SharedFile::of(event->shared->file());
    *out = {};
    std::memcpy(out, &shared, sizeof shared);
}

EMULATED_CONTEXT_API(cuIpcOpenEventHandle, 4010, CUevent* out, CUipcEventHandle given) {
    require(out != nullptr);
    EventHandle handle;
    std::memcpy(static_cast<void*>(&handle), &given, sizeof handle);
    require(handle.mark == EventHandle::magic, CUDA_ERROR_INVALID_HANDLE);
    if (handle.file.is_own())
        return refuse(CUDA_ERROR_INVALID_CONTEXT,
                      "the event is this process's own: a handle is for other processes");
    const int file = handle.file.open();
    require(file >= 0, CUDA_ERROR_MAP_FAILED);
    auto event = std::make_shared<Event>();
    event->context = current_context();
    event->timing = false;
    event->shared = SharedMark::open(file);
    require(event->shared != nullptr, CUDA_ERROR_MAP_FAILED);
    *out = new_handle<CUevent>(std::move(event));
    trace(BASCULE_EMULATED_CREATE, nullptr, *out, 0, "cuIpcOpenEventHandle");
}

}  // namespace emulated::driver
