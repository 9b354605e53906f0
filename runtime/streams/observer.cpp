#include <utility>

#include <bascule/runtime/streams/observer.hpp>

namespace bascule {

void ShownCall::begin(WaitingCall call, std::string name) {
    for (const auto& slot : detail::stream_observers) {
        const StreamObserver* observer = slot.load(std::memory_order_acquire);
        if (observer == nullptr || observer->begin_call == nullptr) continue;
        observer_ = observer;
        begun_ = observer->begin_call(call, std::move(name));
        return;
    }
}

}  // namespace bascule
