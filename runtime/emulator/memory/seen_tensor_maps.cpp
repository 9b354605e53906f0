#include "memory/seen_tensor_maps.hpp"

#include <cstring>

namespace emulated::memory {

void SeenTensorMaps::acquire(const std::byte* at) {
    const std::lock_guard lock(mutex_);
    std::memcpy(seen_[at].data(), at, sizeof(Bytes));
}

bool SeenTensorMaps::see(const std::byte* at) {
    const std::lock_guard lock(mutex_);
    const auto [found, is_new] = seen_.try_emplace(at);
    if (is_new) std::memcpy(found->second.data(), at, sizeof(Bytes));
    return std::memcmp(found->second.data(), at, sizeof(Bytes)) == 0;
}

}  // namespace emulated::memory
