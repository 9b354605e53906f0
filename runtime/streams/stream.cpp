#include <utility>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/lifetime/lifetime.hpp>
#include <bascule/runtime/streams/stream.hpp>

namespace bascule {
namespace {

/// The driver clamps priorities silently, which would hide a mistake.
void check_priority(Device device, int priority) {
    if (priority == 0) return;
    const PriorityRange range = priorities_of(device);
    if (priority >= range.most_urgent && priority <= range.least_urgent) return;
    throw ArgumentError(
        ArgumentError::Kind::value,
        fmt::format(
            "`priority` is {}, and streams of device {} have priorities from {} (the least urgent) to {} "
            "(the most urgent).",
            priority, device.ordinal(), range.least_urgent, range.most_urgent),
        {.field = "priority", .got = std::to_string(priority)});
}

}  // namespace

Stream::Stream(Device device, int priority) : device_(device) {
    const Driver& driver = Driver::get();
    check_priority(device, priority);
    const ContextGuard context(device.context());
    CUstream native = nullptr;
    driver.check(driver.api().cuStreamCreateWithPriority(&native, CU_STREAM_NON_BLOCKING, priority),
                 "making a stream");
    handle_ = reinterpret_cast<std::uint64_t>(native);
}

Stream::~Stream() {
    if (handle_ == 0) return;
    retire(*this);
    const Driver& driver = *Driver::existing();
    driver.report(driver.api().cuStreamDestroy(ref().native()), "destroying a stream");
}

Stream::Stream(Stream&& other) noexcept : handle_(std::exchange(other.handle_, 0)), device_(other.device_) {}

Stream& Stream::operator=(Stream&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(device_, other.device_);
    return *this;
}

PriorityRange priorities_of(Device device) {
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    PriorityRange range;
    driver.check(driver.api().cuCtxGetStreamPriorityRange(&range.least_urgent, &range.most_urgent),
                 "asking which priorities streams can have");
    return range;
}

int priority_of(StreamRef stream) {
    const Driver& driver = Driver::get();
    const ContextGuard context(stream.context());
    int priority = 0;
    driver.check(driver.api().cuStreamGetPriority(stream.native(), &priority), stream.native(),
                 "asking which priority work has");
    return priority;
}

Device device_of_stream(std::uint64_t handle, Device assumed) {
    if (handle <= 2 || Device::count() < 2) return assumed;
    const Driver& driver = Driver::get();
    CUcontext context = nullptr;
    driver.check(driver.api().cuStreamGetCtx(reinterpret_cast<CUstream>(handle), &context),
                 fmt::format("asking which device {} belongs to", doubtful_name_of_stream(handle)));
    for (int ordinal = 0; ordinal < Device::count(); ++ordinal) {
        if (const Device device(ordinal); device.context() == context) return device;
    }
    return assumed;  // its context is not a primary one
}

}  // namespace bascule
