// Driver calls that Bascule makes for its own bookkeeping and that order nothing for the program.
#pragma once

#include <bascule/runtime/driver/emulated_device.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>
#include <bascule/runtime/streams/wait_watch.hpp>

namespace bascule {

/// While an object lives, the calling thread's driver calls count as bookkeeping: the emulated device's trace omits
/// them, and captures do not forbid them. Objects do not nest.
class Bookkeeping {
  public:
    explicit Bookkeeping(const Driver& driver) noexcept : emulated_(driver.emulated_functions()) {
        if (emulated_ != nullptr) emulated_->bookkeeping(1);
        active() = true;
    }
    ~Bookkeeping() {
        if (emulated_ != nullptr) emulated_->bookkeeping(0);
        active() = false;
    }
    Bookkeeping(Bookkeeping&&) = delete;

    /// True while an object lives in the calling thread. Recordings of driver calls on a GPU omit such calls too.
    static bool& active() noexcept {
        thread_local constinit bool is_active = false;
        return is_active;
    }

  private:
    const RelaxedCapture relaxed_;
    const EmulatedFunctions* emulated_;
};

/// Calls wait_watched with driver calls that count as bookkeeping. Calls that signal handlers make between them do not
/// count.
template <class Query, class Wait>
DriverResult wait_as_bookkeeping(const Driver& driver, const char* what, const Query& query,
                                 const Wait& wait) {
    const auto unseen = [&driver](const auto& call) {
        return [&] {
            const Bookkeeping bookkeeping(driver);
            return call();
        };
    };
    return wait_watched(what, unseen(query), unseen(wait));
}

/// The same for all that was enqueued on a stream, whose context is current.
inline DriverResult wait_as_bookkeeping(const Driver& driver, const char* what, StreamRef stream) {
    return wait_as_bookkeeping(
        driver, what, [&] { return driver.api().cuStreamQuery(stream.native()); },
        [&] { return driver.api().cuStreamSynchronize(stream.native()); });
}

}  // namespace bascule
