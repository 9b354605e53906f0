// An owner: something that is kept until the device has finished with its memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace bascule {

/// Something to keep. `release` releases several at once, because it takes whatever lock they need (Python's: the
/// GIL).
struct Owner {
    void* object = nullptr;
    void (*release)(void* const* objects, std::size_t count) noexcept = nullptr;
    std::uint64_t bytes = 0;  ///< of memory that goes with it, as far as is known
};

/// The owners of an operation, or of several at once, which are released in the same way. Borrows the list of them.
struct Owners {
    Owners() = default;
    Owners(const Owner& owner) noexcept : Owners(&owner.object, 1, owner.release, owner.bytes) {}
    Owners(void* const* all, std::size_t how_many, decltype(Owner::release) how,
           std::uint64_t of_memory) noexcept
        : objects(all), count(how_many), release(how), bytes(of_memory) {}

    bool empty() const noexcept { return count == 0 && borrowed == 0; }

    void* const* objects = nullptr;
    std::size_t count = 0;
    /// So many more follow in `objects`. Their memory is given back in the order of a stream that comes after the operation, so
    /// only a graph that captures the operation owns them: `retain` makes it an owner, whom `release` ends.
    std::size_t borrowed = 0;
    void (*retain)(void* const* objects, std::size_t count) noexcept = nullptr;
    decltype(Owner::release) release = nullptr;
    std::uint64_t bytes = 0;       ///< of memory that goes with all of them, as far as is known
    std::uint32_t operations = 1;  ///< that have used them on the stream since they were handed over last

    /// Of an operation whose owners, and whose code, the caller hands over later.
    static Owners handed_over_later() noexcept {
        Owners none;
        none.operations = 0;
        return none;
    }
};

/// For objects that were made with `new`.
template <class T>
void delete_owners(void* const* objects, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) delete static_cast<T*>(objects[i]);
}

/// Releases all of them. No lock of ours is held: any code may run.
inline void release(const Owners& owners) noexcept {
    if (owners.count != 0) owners.release(owners.objects, owners.count);
}

/// Those of an operation that a graph has captured, which owns the borrowed ones too once they were taken. No lock of ours is
/// held meanwhile.
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
    void taken() noexcept { borrowed_ = 0; }

  private:
    Owners all_;
    std::size_t borrowed_;
};
inline void release(const std::vector<Owner>& owners) noexcept {
    for (const Owner& owner : owners) owner.release(&owner.object, 1);
}

/// Adds them to a list. Throws where there is no memory; then none was added.
inline void append(std::vector<Owner>& list, const Owners& owners) {
    list.reserve(list.size() + owners.count);
    for (std::size_t i = 0; i < owners.count; ++i) list.push_back({owners.objects[i], owners.release});
}

/// Code that an operation uses. The caller that issues the operation owns it meanwhile; a graph that captures the operation locks
/// this. Empty for code that is never unloaded.
using CodeRef = std::weak_ptr<const void>;

/// Code that a graph owns, each once.
class CodeList {
  public:
    /// Throws where there is no memory; then it was not added.
    void add(const CodeRef* code) {
        std::shared_ptr<const void> owned = code == nullptr ? nullptr : code->lock();
        if (owned != nullptr && std::find(all_.begin(), all_.end(), owned) == all_.end())
            all_.push_back(std::move(owned));
    }

  private:
    std::vector<std::shared_ptr<const void>> all_;
};

/// A moment in the order in which owners were handed over.
using KeptMark = std::uint64_t;

namespace detail {
inline std::atomic<KeptMark> newest_mark{0};
}  // namespace detail

/// The mark of the newest operation. Taken before a synchronisation, so that what another thread enqueues
/// meanwhile is not taken for finished.
inline KeptMark kept_so_far() noexcept { return detail::newest_mark.load(std::memory_order_relaxed); }

}  // namespace bascule
