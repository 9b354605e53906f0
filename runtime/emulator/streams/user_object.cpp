// Destructors run only when a driver call returns (DueDestructors), because the last reference may be released with a
// lock held or in a thread that runs a graph.
#include "streams/user_object.hpp"

#include <mutex>
#include <vector>

namespace emulated::streams {
namespace {

struct Due {
    std::mutex mutex;
    std::vector<std::shared_ptr<UserObject>> objects;
};

Due& due() {
    static auto* made = new Due;  // not destroyed, because graphs may be destroyed at the end of the process
    return *made;
}

}  // namespace

bool UserObject::drop(std::uint64_t count) {
    std::uint64_t had = references_.load();
    do {
        if (had < count) return false;
    } while (!references_.compare_exchange_weak(had, had - count));
    if (had == count) DueDestructors::add(shared_from_this());
    return true;
}

void DueDestructors::add(std::shared_ptr<UserObject> object) {
    const std::lock_guard lock(due().mutex);
    due().objects.push_back(std::move(object));
    any_.store(true, std::memory_order_relaxed);
}

void DueDestructors::call() {
    std::vector<std::shared_ptr<UserObject>> objects;
    {
        const std::lock_guard lock(due().mutex);
        objects.swap(due().objects);
        any_.store(false, std::memory_order_relaxed);
    }
    for (const auto& object : objects) object->destroy();
}

}  // namespace emulated::streams
