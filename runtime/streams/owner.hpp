// Owners: objects that are kept until the device no longer uses their memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace bascule {

/// An object to keep. `release` releases several at once, under whatever lock it needs (the GIL for Python objects).
struct Owner {
    void* object = nullptr;
    void (*release)(void* const* objects, std::size_t count) noexcept = nullptr;
    std::uint64_t bytes = 0;  ///< size of its memory, if known
};

/// The owners of one or more operations, all with the same `release`. Borrows the list.
struct Owners {
    Owners() = default;
    Owners(const Owner& owner) noexcept : Owners(&owner.object, 1, owner.release, owner.bytes) {}
    Owners(void* const* all, std::size_t how_many, decltype(Owner::release) how,
           std::uint64_t of_memory) noexcept
        : objects(all), count(how_many), release(how), bytes(of_memory) {}

    bool empty() const noexcept { return count == 0 && borrowed == 0; }

    void* const* objects = nullptr;
    std::size_t count = 0;
    /// This many more objects follow in `objects`. Their memory is freed in the order of a stream that waits for the
    /// operation, so only a graph that captures the operation has to own them: `retain` turns them into owners, which
    /// `release` releases.
    std::size_t borrowed = 0;
    void (*retain)(void* const* objects, std::size_t count) noexcept = nullptr;
    decltype(Owner::release) release = nullptr;
    std::uint64_t bytes = 0;       ///< size of the memory of all owners, if known
    std::uint32_t operations = 1;  ///< how many operations on the stream they are passed for

    /// For an operation whose owners and code the caller passes on later.
    static Owners handed_over_later() noexcept {
        Owners none;
        none.operations = 0;
        return none;
    }
};

/// A release function for objects made with `new`.
template <class T>
void delete_owners(void* const* objects, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) delete static_cast<T*>(objects[i]);
}

/// Releases all owners. The caller must hold no lock, because any code may run.
inline void release(const Owners& owners) noexcept {
    if (owners.count != 0) owners.release(owners.objects, owners.count);
}

/// The owners of a captured operation. The graph also owns the borrowed ones after `transferred`. The caller must hold no
/// lock when this is destroyed.
class OwnersForGraph {
  public:
    explicit OwnersForGraph(const Owners& owners) noexcept : all_(owners), borrowed_(owners.borrowed) {
        if (borrowed_ != 0) owners.retain(owners.objects + owners.count, borrowed_);
        all_.count += borrowed_;
        all_.borrowed = 0;
    }
    OwnersForGraph(OwnersForGraph&&) = delete;
    ~OwnersForGraph() {
        if (borrowed_ != 0) all_.release(all_.objects + all_.count - borrowed_, borrowed_);
    }
    const Owners& get() const noexcept { return all_; }
    void transferred() noexcept { borrowed_ = 0; }

  private:
    Owners all_;
    std::size_t borrowed_;
};
inline void release(const std::vector<Owner>& owners) noexcept {
    for (const Owner& owner : owners) owner.release(&owner.object, 1);
}

/// Appends the owners to a list. If it throws std::bad_alloc, none was added.
inline void append(std::vector<Owner>& list, const Owners& owners) {
    list.reserve(list.size() + owners.count);
    for (std::size_t i = 0; i < owners.count; ++i) list.push_back({owners.objects[i], owners.release});
}

/// A reference to code that an operation uses. The caller owns the code while it issues the operation; a graph that
/// captures the operation locks the reference. Empty for code that is never unloaded.
using CodeRef = std::weak_ptr<const void>;

/// The code that a graph owns, without duplicates.
class CodeList {
  public:
    /// Throws std::bad_alloc without adding the code.
    void add(const CodeRef* code) {
        std::shared_ptr<const void> owned = code == nullptr ? nullptr : code->lock();
        if (owned != nullptr && std::find(all_.begin(), all_.end(), owned) == all_.end())
            all_.push_back(std::move(owned));
    }

  private:
    std::vector<std::shared_ptr<const void>> all_;
};

/// A position in the global order of operations.
using KeptMark = std::uint64_t;

namespace detail {
inline std::atomic<KeptMark> newest_mark{0};
}  // namespace detail

/// The mark of the newest operation. Read it before a synchronization, so that operations that another thread enqueues
/// meanwhile do not count as finished.
inline KeptMark kept_so_far() noexcept { return detail::newest_mark.load(std::memory_order_relaxed); }

}  // namespace bascule
