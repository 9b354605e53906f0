#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <bascule/runtime/streams/wait_watch.hpp>

namespace bascule {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds between_questions{100};

/// One wait: its start, and the time of the next check for an interruption.
class WatchedWait {
  public:
    explicit WatchedWait(const char* what) noexcept : what_(what) {}

    /// Throws: WaitInterrupted.
    void ask() {
        if (Clock::now() < next_question_) return;
        if (services().wait_watch.is_interrupted()) throw_wait_interrupted(what_);
        next_question_ = Clock::now() + between_questions;
    }

    /// Short waits spin, as the driver does. Long ones last at most 1/64 longer than necessary.
    void pause() const {
        const auto waited = Clock::now() - begin_;
        if (waited < milliseconds(1)) {
            std::this_thread::yield();
        } else {
            std::this_thread::sleep_for(std::min<Clock::duration>(waited / 64, milliseconds(1)));
        }
    }

  private:
    const char* what_;
    const Clock::time_point begin_ = Clock::now();
    Clock::time_point next_question_ = begin_ + between_questions;
};

/// A thread that runs blocking waits on behalf of other threads, one after another. A wait that never ends keeps it for
/// ever.
class Helper {
  public:
    using Work = std::function<void()>;

    /// Runs `work` on an idle helper or on a new one. Throws if no thread can be started.
    static void run(Work work) {
        Helper* helper = nullptr;
        {
            const std::lock_guard lock(idle().mutex);
            helper = std::exchange(idle().newest, nullptr);
            if (helper != nullptr) idle().newest = helper->next_;
        }
        if (helper == nullptr) {
            helper = new Helper;  // lives until the process ends, like its thread
            std::thread([helper] { helper->serve(); }).detach();
        }
        {
            const std::lock_guard lock(helper->mutex_);
            helper->work_ = std::move(work);
        }
        helper->wanted_.notify_one();
    }

  private:
    struct Idle {
        std::mutex mutex;
        Helper* newest = nullptr;
    };
    static Idle& idle() {
        static auto* made = new Idle;  // never destroyed, because the threads use it until the end
        return *made;
    }

    [[noreturn]] void serve() {
        for (;;) {
            Work work;
            {
                std::unique_lock lock(mutex_);
                wanted_.wait(lock, [this] { return work_ != nullptr; });
                work = std::exchange(work_, nullptr);
            }
            work();
            const std::lock_guard lock(idle().mutex);
            next_ = std::exchange(idle().newest, this);
        }
    }

    std::mutex mutex_;
    std::condition_variable wanted_;
    Work work_;
    Helper* next_ = nullptr;  // in the list of idle helpers
};

}  // namespace

bool waits_are_watched() noexcept {
    const auto watches_this_thread = services().wait_watch.watches_this_thread;
    return watches_this_thread != nullptr && watches_this_thread();
}

void throw_wait_interrupted(const char* what) {
    throw WaitInterrupted(std::string("the wait for ") + what +
                          " was interrupted; what was enqueued goes on on the device.");
}

DriverResult wait_watched(const char* what, const std::function<DriverResult()>& query,
                          const std::function<DriverResult()>& wait) {
    if (!waits_are_watched()) return wait();
    for (WatchedWait watched(what); query() == CUDA_ERROR_NOT_READY; watched.pause()) watched.ask();
    return wait();
}

DriverResult wait_watched_elsewhere(const char* what, std::function<DriverResult()> wait) {
    const auto promise = std::make_shared<std::promise<DriverResult>>();
    std::future<DriverResult> result = promise->get_future();
    Helper::run([promise, wait = std::move(wait)] { promise->set_value(wait()); });
    WatchedWait watched(what);
    while (result.wait_for(between_questions) != std::future_status::ready) watched.ask();
    return result.get();
}

}  // namespace bascule
