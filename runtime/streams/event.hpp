// Owned CUDA events.
#pragma once

#include <cstdint>
#include <memory>

#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

/// An event owned by this object. Move-only. Thread-safe: any thread may use it; destroy it in one.
class Event {
  public:
    enum class Timing : std::uint8_t { off, on };

    /// Throws: CudaError.
    explicit Event(Device device = Device::current(), Timing timing = Timing::on);

    operator EventRef() const noexcept { return {native_.get(), device()}; }
    EventRef ref() const noexcept { return *this; }
    Device device() const noexcept { return native_.get_deleter().device; }

    bool timed() const noexcept { return timing_ == Timing::on; }

    /// The milliseconds from `start` to `end`. Both are events of one device, recorded with timing, and finished.
    /// Throws: CudaError.
    static float elapsed_ms(EventRef start, EventRef end);

  private:
    struct Destroyer {
        Device device;
        void operator()(CUevent_st* event) const noexcept;
    };
    std::unique_ptr<CUevent_st, Destroyer> native_;
    Timing timing_;
};

}  // namespace bascule
