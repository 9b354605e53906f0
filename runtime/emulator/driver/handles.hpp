// The table of live handles. A handle that a client passes is looked up before it is used; contexts, graph nodes and
// textures have tables of their own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace emulated::driver {

/// Its address identifies the type of a handle's object.
template <class T>
inline constexpr char kind_of = 0;

/// Maps handles to objects. A destroyed or invented handle is reported as missing and never dereferenced. An object in use
/// by another thread outlives its handle. Thread-safe.
class Handles {
  public:
    /// Registers `object` and returns its handle, which is its address.
    template <class T>
    T* add(std::shared_ptr<T> object) {
        T* handle = object.get();
        const std::lock_guard lock(mutex_);
        entries_[handle] = {&kind_of<T>, std::move(object)};
        return handle;
    }

    /// Returns null unless `handle` is alive and of this kind.
    template <class T>
    std::shared_ptr<T> find(const void* handle) {
        const std::lock_guard lock(mutex_);
        const auto entry = entries_.find(handle);
        if (entry == entries_.end() || entry->second.kind != &kind_of<T>) return nullptr;
        return std::static_pointer_cast<T>(entry->second.object);
    }

    /// Calls `use(get)` under the lock. get<T>(handle) returns a plain pointer that is valid until `use` returns. For paths
    /// where counting references costs too much. `use` must be short and take no lock.
    template <class Use>
    auto borrow(const Use& use) {
        const std::lock_guard lock(mutex_);
        return use(Borrower{entries_});
    }

    /// Removes the handle and returns its object; null if it is not alive or of another kind.
    template <class T>
    std::shared_ptr<T> remove(const void* handle) {
        const std::lock_guard lock(mutex_);
        const auto entry = entries_.find(handle);
        if (entry == entries_.end() || entry->second.kind != &kind_of<T>) return nullptr;
        auto object = std::static_pointer_cast<T>(std::move(entry->second.object));
        entries_.erase(entry);
        removals_.fetch_add(1, std::memory_order_release);
        return object;
    }

    /// The number of handles removed so far. If it has not changed since a successful lookup, that handle is still alive.
    std::uint64_t removals() const noexcept { return removals_.load(std::memory_order_acquire); }

    /// Returns every live object of a kind for which `wanted(object)` is true.
    template <class T, class Wanted>
    std::vector<std::shared_ptr<T>> all(const Wanted& wanted) {
        const std::lock_guard lock(mutex_);
        std::vector<std::shared_ptr<T>> found;
        for (const auto& [handle, entry] : entries_) {
            if (entry.kind != &kind_of<T>) continue;
            auto object = std::static_pointer_cast<T>(entry.object);
            if (wanted(*object)) found.push_back(std::move(object));
        }
        return found;
    }

  private:
    struct Entry {
        const char* kind = nullptr;
        std::shared_ptr<void> object;
    };
    using Entries = std::unordered_map<const void*, Entry>;

    struct Borrower {
        const Entries& entries;
        template <class T>
        T* get(const void* handle) const {
            const auto entry = entries.find(handle);
            const bool fits = entry != entries.end() && entry->second.kind == &kind_of<T>;
            return fits ? static_cast<T*>(entry->second.object.get()) : nullptr;
        }
    };

    std::mutex mutex_;
    Entries entries_;
    std::atomic<std::uint64_t> removals_{0};
};

}  // namespace emulated::driver
