#include "machine/grids/crew.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <unistd.h>

namespace emulated::machine {
namespace {

/// The exception that the job throws; null if it returns.
std::exception_ptr error_of(const std::function<void()>& job) noexcept {
    try {
        job();
        return nullptr;
    } catch (...) {
        return std::current_exception();
    }
}

}  // namespace

Crew& Crew::get() {
    static std::mutex mutex;
    static Crew* crew = nullptr;
    const std::lock_guard lock(mutex);
    const pid_t process = getpid();
    if (crew == nullptr || crew->process_ != process) {  // threads do not survive a fork
        crew = new Crew;
        crew->process_ = process;
    }
    return *crew;
}

void Crew::work(const std::function<void()>& job, unsigned workers, const std::function<void()>& meanwhile) {
    Task task{job, workers - 1, 0, nullptr};
    {
        const std::lock_guard lock(mutex_);
        for (; helpers_ + 1 < workers; ++helpers_) std::thread([this] { help(); }).detach();
        tasks_.push_back(&task);
    }
    offered_.notify_all();
    std::exception_ptr error = error_of(job);
    std::unique_lock lock(mutex_);
    std::erase(tasks_, &task);
    constexpr std::chrono::milliseconds interval{20};
    while (!finished_.wait_for(lock, interval, [&] { return task.inside == 0; })) {
        lock.unlock();
        meanwhile();
        lock.lock();
    }
    if (!error) error = task.error;
    lock.unlock();
    if (error) std::rethrow_exception(error);
}

Crew::Task* Crew::next_task() const {
    const auto found = std::ranges::find_if(tasks_, [](const Task* task) { return task->wanted > 0; });
    return found == tasks_.end() ? nullptr : *found;
}

void Crew::help() {
    std::unique_lock lock(mutex_);
    for (;;) {
        Task* task = nullptr;
        offered_.wait(lock, [&] { return (task = next_task()) != nullptr; });
        --task->wanted;
        ++task->inside;
        lock.unlock();
        const std::exception_ptr error = error_of(task->job);
        lock.lock();
        if (error) task->error = error;
        if (--task->inside == 0) finished_.notify_all();
    }
}

}  // namespace emulated::machine
