#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/streams/relaxed_capture.hpp>

namespace bascule {

RelaxedCapture::RelaxedCapture() noexcept {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    Driver::existing()->api().cuThreadExchangeStreamCaptureMode(&mode);
    mode_ = static_cast<int>(mode);
}

RelaxedCapture::~RelaxedCapture() {
    auto mode = static_cast<CUstreamCaptureMode>(mode_);
    Driver::existing()->api().cuThreadExchangeStreamCaptureMode(&mode);
}

}  // namespace bascule
