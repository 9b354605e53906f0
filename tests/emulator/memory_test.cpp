// The heap of the emulated device: bounds to the byte, redzones, quarantine, poison, descriptions.
#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>
#include <random>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>

#include "driver/device_view.hpp"
#include "memory/address_space.hpp"
#include "memory/heap.hpp"

using emulated::driver::DeviceView;
using emulated::memory::AddressSpace;
using emulated::memory::Allocation;
using emulated::memory::DeviceAddress;
using emulated::memory::Heap;
using emulated::memory::HostPages;
using emulated::memory::ManagedGuard;

namespace {

constexpr auto device = Allocation::Kind::device;
constexpr auto pinned = Allocation::Kind::pinned;
constexpr std::uint64_t megabyte = std::uint64_t{1} << 20;

/// Returns whether a process that runs `body` ends normally, by exit(0).
template <class Body>
bool survives(const Body& body) {
    const pid_t child = fork();
    if (child == 0) {
        for (const int signal : {SIGSEGV, SIGBUS}) std::signal(signal, SIG_DFL);
        body();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("the host cannot use a device address, and can use the bytes behind it") {
    Heap heap(1, 64 * megabyte);
    const DeviceAddress address = *heap.allocate(0, 64, device);
    CHECK_FALSE(survives([&] { *reinterpret_cast<volatile char*>(address) = 1; }));
    CHECK(survives([&] { *reinterpret_cast<volatile char*>(heap.host(address, 1)) = 1; }));
}

TEST_CASE("an allocation ends at its last byte, whatever its alignment") {
    Heap heap(1, 64 * megabyte);
    for (const std::uint64_t bytes : {1U, 3U, 255U, 256U, 257U, 4096U, 100003U}) {
        CAPTURE(bytes);
        const DeviceAddress address = *heap.allocate(0, bytes, device);
        CHECK(address % 256 == 0);
        REQUIRE(heap.find(address + bytes - 1) != nullptr);
        CHECK(heap.find(address + bytes - 1)->base == address);
        CHECK(heap.find(address + bytes) == nullptr);
        CHECK(heap.find(address - 1) == nullptr);
        CHECK(heap.host(address, bytes) != nullptr);
        CHECK(heap.host(address, bytes + 1) == nullptr);
        CHECK(heap.host(address + 1, bytes) == nullptr);
    }
}

TEST_CASE("an alignment above 256 bytes is kept") {
    Heap heap(1, 64 * megabyte);
    for (int i = 0; i < 5; ++i) {
        CHECK(*heap.allocate(0, 10, Allocation::Kind::module_global, 4096) % 4096 == 0);
    }
}

TEST_CASE("fresh memory is poisoned, also where memory was used before") {
    Heap heap(1, 256 * megabyte);
    for (int round = 0; round < 40; ++round) {  // 120 MiB, which the quarantine keeps: every address is new
        const std::uint64_t bytes = 3 * megabyte + 17;
        const DeviceAddress address = *heap.allocate(0, bytes, device);
        const std::byte* host = heap.host(address, bytes);
        CHECK(host[0] == std::byte{0xCB});
        CHECK(host[bytes / 2] == std::byte{0xCB});
        CHECK(host[bytes - 1] == std::byte{0xCB});
        std::memset(heap.host(address, bytes), round, bytes);
        CHECK(heap.free(address, device));
    }
}

TEST_CASE("what is freed is not found, cannot be freed again, and is not used again at once") {
    Heap heap(1, 64 * megabyte);
    const DeviceAddress first = *heap.allocate(0, 1000, device);
    CHECK(heap.free(first, device));
    CHECK(heap.find(first) == nullptr);
    CHECK_FALSE(heap.free(first, device));
    for (int i = 0; i < 100; ++i) CHECK(*heap.allocate(0, 1000, device) != first);
}

TEST_CASE("only the first byte of an allocation frees it, and only as what it is") {
    Heap heap(1, 64 * megabyte);
    const DeviceAddress address = *heap.allocate(0, 1000, device);
    CHECK_FALSE(heap.free(address + 4, device));
    CHECK_FALSE(heap.free(address, pinned));
    CHECK_FALSE(heap.free(0x1000, device));
    CHECK(heap.find(address) != nullptr);
}

TEST_CASE("a kernel that runs while its memory is freed keeps a valid pointer to the allocation") {
    Heap heap(1, 64 * megabyte);
    const DeviceAddress address = *heap.allocate(0, 1000, device);
    const Allocation* held = heap.find(address);
    heap.free(address, device);
    CHECK(held->bytes == 1000);
    CHECK(*held->host == std::byte{0xDB});  // poisoned, and still mapped
}

TEST_CASE("each device has its own capacity, which freeing gives back") {
    Heap heap(2, megabyte);
    const auto whole = heap.allocate(0, megabyte, device);
    REQUIRE(whole.has_value());
    CHECK_FALSE(heap.allocate(0, 1, device).has_value());
    CHECK(heap.allocate(1, megabyte, device).has_value());
    CHECK(heap.used(0) == megabyte);
    heap.free(*whole, device);
    CHECK(heap.used(0) == 0);
    CHECK(heap.allocate(0, megabyte, device).has_value());
}

TEST_CASE("sizes that no device could hold are refused, not wrapped around") {
    Heap heap(1, megabyte);
    for (const std::uint64_t bytes : {megabyte + 1, UINT64_MAX / 2, UINT64_MAX - 255, UINT64_MAX}) {
        CHECK_FALSE(heap.allocate(0, bytes, device).has_value());
        if (bytes > UINT64_MAX / 4) CHECK_FALSE(heap.allocate(0, bytes, pinned).has_value());
    }
}

TEST_CASE("pinned memory has one address for host and kernels, and takes nothing of the device's") {
    Heap heap(1, megabyte);
    const DeviceAddress address = *heap.allocate(0, 100, pinned);
    CHECK(heap.host(address, 100) == reinterpret_cast<std::byte*>(address));
    CHECK(heap.find(address + 100) == nullptr);
    CHECK(heap.used(0) == 0);
    CHECK_FALSE(heap.is_device_address(address));
    CHECK(heap.free(address, pinned));
}

TEST_CASE("registered host memory is found until it is unregistered, and never freed by the heap") {
    Heap heap(1, megabyte);
    std::vector<char> mine(1000);
    const auto address = reinterpret_cast<DeviceAddress>(mine.data());
    CHECK(heap.register_host(mine.data(), 1000, 0));
    CHECK_FALSE(heap.register_host(mine.data() + 10, 10, 0));
    CHECK(heap.find(address + 999) != nullptr);
    CHECK_FALSE(heap.free(address, pinned));
    CHECK(heap.unregister_host(mine.data()));
    CHECK_FALSE(heap.unregister_host(mine.data()));
    CHECK(heap.find(address) == nullptr);
}

TEST_CASE("an address is described by the nearest allocation and its name") {
    Heap heap(1, 64 * megabyte);
    const DeviceAddress y = *heap.allocate(0, 4096, device);
    heap.set_name(y, "'y'");
    CHECK(heap.describe(y + 4096, 4) == "directly past the 4096-byte allocation 'y'");
    CHECK(heap.describe(y + 4100, 4) == "4 bytes past the 4096-byte allocation 'y'");
    CHECK(heap.describe(y - 8, 4) == "8 bytes before the 4096-byte allocation 'y'");
    CHECK(heap.describe(y + 4094, 4) ==
          "4 bytes from byte 4094 on, which reaches past the 4096-byte allocation 'y'");
    CHECK(heap.describe(y + 8, 4) == "at byte 8 of the 4096-byte allocation 'y'");
    CHECK(heap.describe(8, 4) == "no allocation is near");
    heap.free(y, device);
    CHECK(heap.describe(y + 8, 4) == "inside a freed 4096-byte allocation 'y'");
}

TEST_CASE("a big freed allocation is remembered too") {
    Heap heap(1, 512 * megabyte);
    const DeviceAddress address = *heap.allocate(0, 200 * megabyte, device);
    heap.free(address, device);
    CHECK(heap.describe(address + megabyte, 4) == "inside a freed 209715200-byte allocation");
}

TEST_CASE("what is reserved has an address and is not memory until it is committed") {
    Heap heap(1, megabyte);
    const DeviceAddress address = *heap.reserve(0, 1000);
    heap.set_name(address, "later");
    CHECK(heap.find(address) == nullptr);
    CHECK(heap.host(address, 1) == nullptr);
    CHECK(heap.find_known(address + 999)->base == address);
    CHECK(heap.find_known(address + 1000) == nullptr);
    CHECK(heap.used(0) == 1000);
    CHECK_FALSE(heap.free(address, device));
    CHECK(heap.describe(address + 8, 4).find("inside the 1000-byte allocation later, whose stream-ordered") ==
          0);
    CHECK(*heap.allocate(0, 1000, device) != address);
    CHECK_FALSE(heap.reserve(0, megabyte).has_value());

    CHECK(heap.commit(address));
    CHECK_FALSE(heap.commit(address));
    CHECK_FALSE(heap.commit(address + 8));
    CHECK(heap.find(address + 999)->base == address);
    CHECK(*heap.host(address, 1000) == std::byte{0xCB});
    CHECK(heap.describe(address + 8, 4) == "at byte 8 of the 1000-byte allocation later");
    CHECK(heap.free(address, device, Heap::FreedBy::stream));
    CHECK(heap.used(0) == 1000);  // the other allocation's
    CHECK(heap.describe(address, 4) ==
          "inside a freed 1000-byte allocation later: a stream-ordered free (cuMemFreeAsync) came before "
          "this");
}

TEST_CASE("every byte outside an allocation is in nobody's, every byte inside in its own") {
    Heap heap(1, 64 * megabyte);
    std::mt19937 random(3);
    std::vector<std::pair<DeviceAddress, std::uint64_t>> made;
    for (int i = 0; i < 60; ++i) {
        const std::uint64_t bytes = 1 + random() % 700;
        made.emplace_back(*heap.allocate(0, bytes, device), bytes);
    }
    for (const auto& [address, bytes] : made) {
        for (std::uint64_t at = 0; at < bytes; ++at) REQUIRE(heap.find(address + at)->base == address);
        for (std::uint64_t past = 0; past < 256; ++past) {
            REQUIRE(heap.find(address + bytes + past) == nullptr);
            REQUIRE(heap.find(address - 1 - past) == nullptr);
        }
    }
}

TEST_CASE("a range comes back into use only after many others, and then without its old content") {
    Heap heap(1, 64 * megabyte);
    const DeviceAddress first = *heap.allocate(0, 64, device);
    std::memset(heap.host(first, 64), 0x5A, 64);
    heap.free(first, device);
    int rounds = 0;
    for (; rounds < 100000; ++rounds) {
        const DeviceAddress next = *heap.allocate(0, 64, device);
        if (next == first) break;
        heap.free(next, device);
    }
    CHECK(rounds > 1000);
    REQUIRE(heap.find(first) != nullptr);
    for (int i = 0; i < 64; ++i) CHECK(heap.host(first, 64)[i] == std::byte{0xCB});
}

TEST_CASE("free ranges that touch become one, whatever the order in which they come back") {
    constexpr std::uint64_t base = 0x10000, piece = 0x1000, pieces = 64;
    AddressSpace space(base, piece * pieces);
    std::vector<std::uint64_t> taken;
    for (std::uint64_t i = 0; i < pieces; ++i) taken.push_back(space.take(piece, 256));
    CHECK(space.take(1, 1) == 0);
    std::mt19937 random(7);
    std::shuffle(taken.begin(), taken.end(), random);
    for (const std::uint64_t address : taken) space.give(address, piece);
    CHECK(space.take(piece * pieces, 1) == base);
}

TEST_CASE("random allocations and frees agree with a list of them") {
    Heap heap(1, 64 * megabyte);
    std::mt19937_64 random(20261121);
    std::map<DeviceAddress, std::uint64_t> model;
    std::uint64_t used = 0;
    for (int step = 0; step < 20000; ++step) {
        if (model.empty() || random() % 5 < 3) {
            const std::uint64_t bytes = 1 + random() % (random() % 50 == 0 ? 2 * megabyte : 5000);
            const auto address = heap.allocate(0, bytes, device);
            REQUIRE(address.has_value() == (bytes <= 64 * megabyte - used));
            if (!address) continue;
            const auto after = model.upper_bound(*address);
            if (after != model.end()) REQUIRE(*address + bytes + 256 <= after->first);
            if (after != model.begin()) {
                REQUIRE(std::prev(after)->first + std::prev(after)->second + 256 <= *address);
            }
            model[*address] = bytes;
            used += bytes;
        } else {
            auto victim = std::next(model.begin(), static_cast<std::ptrdiff_t>(random() % model.size()));
            REQUIRE(heap.free(victim->first, device));
            used -= victim->second;
            model.erase(victim);
        }
        REQUIRE(heap.used(0) == used);
    }
    for (const auto& [address, bytes] : model) {
        REQUIRE(heap.find(address + bytes - 1) != nullptr);
        CHECK(heap.find(address + bytes - 1)->bytes == bytes);
    }
}

TEST_CASE("memory of a context that is not primary shares no block of 2 MiB with other memory") {
    Heap heap(1, 256 * megabyte);
    const auto block_of = [](DeviceAddress address) { return address / (2 * megabyte); };
    std::vector<std::pair<DeviceAddress, std::uint64_t>> made;  // address and context
    for (const std::uint64_t space : {0, 16, 17, 0, 16, 0})
        made.emplace_back(heap.allocate(0, 4096, device, 256, space).value(), space);
    for (const auto& [address, space] : made) {
        CHECK(heap.find(address)->space == space);
        for (const auto& [other, other_space] : made) {
            if (space != other_space) CHECK(block_of(address) != block_of(other));
        }
    }
}

TEST_CASE("a context sees its own device memory, its peers' and the host's") {
    Heap heap(2, 256 * megabyte);
    const DeviceAddress primary = heap.allocate(0, 64, device).value();
    const DeviceAddress created = heap.allocate(0, 64, device, 256, 16).value();
    const DeviceAddress far = heap.allocate(1, 64, device).value();
    const DeviceAddress host = heap.allocate(1, 64, pinned, 256, 16).value();
    DeviceView view(heap, {0, 0}, nullptr);
    CHECK(view.find(primary) != nullptr);
    CHECK(view.find(host) != nullptr);
    CHECK(view.find(created) == nullptr);
    CHECK(view.find(far) == nullptr);
    CHECK(view.add_peer({1, 0}) == DeviceView::Added::now);
    CHECK(view.add_peer({1, 0}) == DeviceView::Added::before);
    CHECK(view.find(far) != nullptr);
    CHECK(view.find(created) == nullptr);
    CHECK(view.remove_peer({1, 0}));
    CHECK(view.find(far) == nullptr);
    const DeviceView of_created(heap, {0, 16}, nullptr);
    CHECK(of_created.find(created) != nullptr);
    CHECK(of_created.find(primary) == nullptr);
}

TEST_CASE("host memory is found page by page as it is mapped, and only where kernels reach it") {
    Heap heap(1, 256 * megabyte);
    HostPages pages;
    const DeviceView with(heap, {0, 0}, &pages);
    const DeviceView without(heap, {0, 0}, nullptr);
    void* mapped = mmap(nullptr, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const auto first = reinterpret_cast<DeviceAddress>(mapped);
    mprotect(static_cast<char*>(mapped) + 4096, 4096, PROT_READ);
    mprotect(static_cast<char*>(mapped) + 8192, 4096, PROT_NONE);
    REQUIRE(with.find(first + 100) != nullptr);
    CHECK(with.find(first + 100)->base == first);
    CHECK_FALSE(with.find(first)->read_only);
    CHECK(with.find(first + 4096)->read_only);
    CHECK(with.find(first + 8192) == nullptr);
    CHECK(with.find(0) == nullptr);
    CHECK(without.find(first) == nullptr);
    munmap(mapped, 3 * 4096);
    CHECK(with.find(first) == nullptr);
}

TEST_CASE("managed memory is closed to the host and not to kernels") {
    const auto use = [](bool closed) {
        return survives([closed] {
            ManagedGuard guard;
            Heap heap(1, 256 * megabyte, &guard);
            const DeviceAddress x = heap.allocate(0, 64, Allocation::Kind::managed).value();
            if (closed) guard.close();
            std::byte* for_kernels = heap.host(x, 64);
            for_kernels[3] = std::byte{7};
            const auto* for_host = reinterpret_cast<volatile std::byte*>(x);
            if (for_host[3] != std::byte{7}) _exit(1);
            if (!heap.free(x, Allocation::Kind::managed)) _exit(1);
        });
    };
    CHECK(use(false));
    CHECK_FALSE(use(true));
}
