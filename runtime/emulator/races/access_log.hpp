// Records which bytes an operation read and wrote: one bit per byte and kind of access.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace emulated::races {

/// Strong accesses (atomics, and loads and stores with .relaxed, .acquire or .release) do not race with each other.
enum class Access : std::uint8_t { read, write, strong_read, strong_write };

inline constexpr std::uint64_t page_bytes = 4096;

/// Calls `use(page, first, count)` for each page of the range: `count` bytes from byte `first` of the page.
template <class Use>
void for_pages(std::uint64_t address, std::uint64_t bytes, const Use& use) {
    while (bytes > 0) {
        const std::uint64_t first = address % page_bytes, taken = std::min(bytes, page_bytes - first);
        use(address / page_bytes, first, taken);
        address += taken;
        bytes -= taken;
    }
}

/// The accesses to one page of `page_bytes`.
struct Page {
    static constexpr std::size_t words = page_bytes / 64;
    using Bits = std::array<std::uint64_t, words>;
    std::array<Bits, 4> of{};  ///< indexed by Access

    void add(std::uint64_t first, std::uint64_t bytes, Access access) noexcept;  ///< within the page
    void remove(std::uint64_t first, std::uint64_t bytes) noexcept;
    void add(const Page& other) noexcept;
    bool empty() const noexcept;
};

/// Used by one thread at a time. Addresses are those that kernels see.
class AccessLog {
  public:
    AccessLog() = default;
    AccessLog(AccessLog&&) = delete;

    void add(std::uint64_t address, std::uint64_t bytes, Access access);
    /// Adds `bytes` at the address of each lane in `mask`. Ignores addresses from `skip` to `skip_end`, which other
    /// operations cannot access.
    void add_lanes(const std::uint64_t* addresses, std::uint32_t mask, std::uint64_t bytes, Access access,
                   std::uint64_t skip, std::uint64_t skip_end);
    void remove(std::uint64_t address, std::uint64_t bytes);
    /// Moves all accesses from `other`, which is empty afterwards.
    void take(AccessLog& other);
    void clear();
    /// The number of bytes written, each counted once.
    std::uint64_t written_bytes() const noexcept;

    using Pages = std::unordered_map<std::uint64_t, std::unique_ptr<Page>>;
    Pages& pages() noexcept { return pages_; }

  private:
    Page& page(std::uint64_t number);

    struct Recent {
        std::uint64_t number = ~std::uint64_t{0};
        Page* page = nullptr;
    };
    Pages pages_;
    std::array<Recent, 16> recent_;  // by the last bits of the page number
};

}  // namespace emulated::races
