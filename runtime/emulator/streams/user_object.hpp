// A client's object that graphs keep alive by counted references, with a destructor to call after the last one is released.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace emulated::streams {

/// DueDestructors calls the destructor once. Thread-safe.
class UserObject : public std::enable_shared_from_this<UserObject> {
  public:
    using Destroy = void (*)(void*);
    UserObject(void* pointer, Destroy destroy, std::uint64_t references)
        : pointer_(pointer), destroy_(destroy), references_(references) {}

    void retain(std::uint64_t count) noexcept { references_.fetch_add(count); }
    /// Releases references. Returns false without a change if there are fewer.
    bool drop(std::uint64_t count);
    bool gone() const noexcept { return references_.load() == 0; }
    void destroy() const { destroy_(pointer_); }

  private:
    void* pointer_;
    Destroy destroy_;
    std::atomic<std::uint64_t> references_;
};

/// A graph's references to one object. A copy has the same number of its own references.
class HeldObject {
  public:
    /// Takes ownership of `count` references, which are already counted.
    HeldObject(std::shared_ptr<UserObject> object, std::uint64_t count) noexcept
        : object_(std::move(object)), count_(count) {}
    HeldObject(const HeldObject& other) noexcept : object_(other.object_), count_(other.count_) {
        object_->retain(count_);
    }
    HeldObject(HeldObject&& other) noexcept
        : object_(std::move(other.object_)), count_(std::exchange(other.count_, 0)) {}
    HeldObject& operator=(HeldObject other) noexcept {
        object_.swap(other.object_);
        std::swap(count_, other.count_);
        return *this;
    }
    ~HeldObject() {
        if (object_ != nullptr && count_ != 0) object_->drop(count_);
    }

    const UserObject* object() const noexcept { return object_.get(); }
    std::uint64_t count() const noexcept { return count_; }
    /// Adds references that are already counted.
    void take_over(std::uint64_t count) noexcept { count_ += count; }
    /// Releases ownership of at most `count()` references, which the caller must drop.
    void give_up(std::uint64_t count) noexcept { count_ -= count; }

  private:
    std::shared_ptr<UserObject> object_;
    std::uint64_t count_;
};

/// Its destructor calls the user objects' destructors that are due, in the calling thread. Must be constructed first in a
/// function, so that no lock is held then. (A driver uses a thread of its own, which cannot be waited for.)
class DueDestructors {
  public:
    DueDestructors() = default;
    ~DueDestructors() {
        if (any_.load(std::memory_order_relaxed)) call();
    }
    DueDestructors(DueDestructors&&) = delete;

    static void add(std::shared_ptr<UserObject> object);

  private:
    static void call();

    inline static std::atomic<bool> any_{false};
};

}  // namespace emulated::streams
