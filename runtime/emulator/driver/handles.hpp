// The handles that are alive: whatever a client passes is looked up here before it is used.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace emulated::driver {

enum class HandleKind : std::uint8_t {
    context,
    stream,
    event,
    library,
    kernel,
    link,
    memory_pool,
    graph,
    graph_exec,
    user_object,
    array,
    mipmapped_array
};

/// The kind of what a handle of this type names.
template <class T>
inline constexpr HandleKind kind_of = T::kind;

/// Handle -> object. A destroyed or invented handle is found missing instead of being dereferenced; an object
/// in use by another thread outlives its handle. Thread-safe.
class Handles {
  public:
    /// The handle of `object`: its address.
    template <class T>
    T* add(std::shared_ptr<T> object) {
        T* handle = object.get();
        const std::lock_guard lock(mutex_);
        entries_[handle] = {kind_of<T>, std::move(object)};
        return handle;
    }

    /// Null unless `handle` is alive and of this kind.
    template <class T>
    std::shared_ptr<T> find(const void* handle) {
        const std::lock_guard lock(mutex_);
        const auto entry = entries_.find(handle);
        if (entry == entries_.end() || entry->second.kind != kind_of<T>) return nullptr;
        return std::static_pointer_cast<T>(entry->second.object);
    }

    /// Calls `use(get)` under the lock, where get<T>(handle) gives a plain pointer that is good until `use`
    /// returns: for paths where counting references costs too much. `use` is short and takes no lock.
    template <class Use>
    auto borrow(const Use& use) {
        const std::lock_guard lock(mutex_);
        return use(Borrower{entries_});
    }

    /// Takes the handle out; null when it was not alive or is of another kind.
    template <class T>
    std::shared_ptr<T> remove(const void* handle) {
        const std::lock_guard lock(mutex_);
        const auto entry = entries_.find(handle);
        if (entry == entries_.end() || entry->second.kind != kind_of<T>) return nullptr;
        auto object = std::static_pointer_cast<T>(std::move(entry->second.object));
        entries_.erase(entry);
        removals_.fetch_add(1, std::memory_order_release);
        return object;
    }

    /// How many were taken out so far: a handle that was alive still is while this is what it was before it
    /// was looked up.
    std::uint64_t removals() const noexcept { return removals_.load(std::memory_order_acquire); }

    /// Every live object of a kind for which `wanted(object)` holds.
    template <class T, class Wanted>
    std::vector<std::shared_ptr<T>> all(const Wanted& wanted) {
        const std::lock_guard lock(mutex_);
        std::vector<std::shared_ptr<T>> found;
        for (const auto& [handle, entry] : entries_) {
            if (entry.kind != kind_of<T>) continue;
            auto object = std::static_pointer_cast<T>(entry.object);
            if (wanted(*object)) found.push_back(std::move(object));
        }
        return found;
    }

  private:
    struct Entry {
        HandleKind kind{};
        std::shared_ptr<void> object;
    };
    using Entries = std::unordered_map<const void*, Entry>;

    struct Borrower {
        const Entries& entries;
        template <class T>
        T* get(const void* handle) const {
            const auto entry = entries.find(handle);
            const bool fits = entry != entries.end() && entry->second.kind == kind_of<T>;
            return fits ? static_cast<T*>(entry->second.object.get()) : nullptr;
        }
    };

    std::mutex mutex_;
    Entries entries_;
    std::atomic<std::uint64_t> removals_{0};
};

}  // namespace emulated::driver
