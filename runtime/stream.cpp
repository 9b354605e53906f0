// Streams: waiting for them, asking them, owning them.
#include <utility>

#include <bascule/runtime/driver.hpp>
#include <bascule/runtime/event.hpp>
#include <bascule/runtime/launch_history.hpp>
#include <bascule/runtime/lifetime.hpp>
#include <bascule/runtime/stream.hpp>

namespace bascule {

void StreamRef::synchronize() const {
    const KeptMark mark = kept_so_far();
    const Driver& driver = Driver::get();
    CUresult code = CUDA_SUCCESS;
    {
        const ContextGuard context(device_.context());
        code = driver.api().cuStreamSynchronize(native());
    }
    if (code == CUDA_SUCCESS) note_finished(*this, mark);
    if (code == CUDA_SUCCESS || loses_context(code)) release_finished(*this, mark);
    if (code == CUDA_SUCCESS) return;
    const ContextGuard context(device_.context());  // whose loss it is
    driver.check(code, "cuStreamSynchronize", "waiting for the stream");
}

bool StreamRef::query() const {
    const Driver& driver = Driver::get();
    const ContextGuard context(device_.context());
    const CUresult code = driver.api().cuStreamQuery(native());
    if (code == CUDA_ERROR_NOT_READY) return false;
    driver.check(code, "cuStreamQuery", "asking whether the stream has finished");
    return true;
}

void StreamRef::wait(EventRef event) const {
    const Driver& driver = Driver::get();
    const ContextGuard context(device_.context());
    driver.check(driver.api().cuStreamWaitEvent(native(), event.native(), CU_EVENT_WAIT_DEFAULT),
                 "cuStreamWaitEvent", "letting the stream wait for an event");
}

Stream::Stream(Device device, int priority) : device_(device) {
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    CUstream native = nullptr;
    driver.check(driver.api().cuStreamCreateWithPriority(&native, CU_STREAM_NON_BLOCKING, priority),
                 "cuStreamCreateWithPriority", "making a stream");
    handle_ = reinterpret_cast<std::uint64_t>(native);
}

Stream::~Stream() {
    if (handle_ == 0) return;
    retire(*this);
    const Driver& driver = *Driver::existing();
    driver.report(driver.api().cuStreamDestroy(ref().native()), "cuStreamDestroy", "destroying a stream");
}

Stream::Stream(Stream&& other) noexcept : handle_(std::exchange(other.handle_, 0)), device_(other.device_) {}

Stream& Stream::operator=(Stream&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(device_, other.device_);
    return *this;
}

void synchronize(Device device) {
    const KeptMark mark = kept_so_far();
    const Driver& driver = Driver::get();
    CUresult code = CUDA_SUCCESS;
    {
        const ContextGuard context(device.context());
        code = driver.api().cuCtxSynchronize();
    }
    if (code == CUDA_SUCCESS) note_finished(device, mark);
    if (code == CUDA_SUCCESS || loses_context(code)) release_finished(device, mark);
    if (code == CUDA_SUCCESS) return;
    const ContextGuard context(device.context());  // whose loss it is
    driver.check(code, "cuCtxSynchronize", "waiting for the device");
}

}  // namespace bascule
