// Tensor maps, through which kernels copy boxes of an array to shared memory and back by the Tensor Memory Accelerator (TMA).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include <bascule/interface/arguments/argument_value.hpp>
#include <bascule/interface/arrays/tensor_map.hpp>
#include <bascule/runtime/driver/device.hpp>
#include <bascule/runtime/memory/memory.hpp>
#include <bascule/runtime/textures/tensor_map_rules.hpp>

namespace bascule {

/// A tensor map of an array, for a parameter `const __grid_constant__ CUtensorMap`. It borrows the array, which must outlive it; it
/// must outlive the launches that use it. Immutable, neither copied nor moved, and thread-safe.
class TensorMap {
  public:
    /// `device` is the array's device; its compute capability is 9.0 or higher. The elements are not read, so that no
    /// stream is waited for. Throws: ArgumentError, whose field is the wrong member of `options` or "array"; CudaError;
    /// LibraryError if the driver has no tensor maps.
    TensorMap(const ArrayView& array, const TensorMapOptions& options, Device device = Device::current());
    TensorMap(const TensorMap&) = delete;
    TensorMap& operator=(const TensorMap&) = delete;
    ~TensorMap();  // never throws

    Device device() const noexcept { return device_; }
    const TensorMapDescription& description() const noexcept { return description_; }
    /// The bytes that one load or store of a box moves, elements outside of the array included. Pass it to
    /// mbarrier.arrive.expect_tx.
    std::uint64_t bytes() const noexcept { return bytes_; }
    /// The CUtensorMap.
    const std::array<std::byte, tensor_map_bytes>& encoded() const noexcept { return encoded_; }
    /// The argument for ArgumentPack::set and typed launches. A launch with it is ordered with the array's stream.
    const TensorMapArgument& argument() const noexcept { return argument_; }
    /// The address of a copy of the map in device memory, for a parameter `const CUtensorMap*`. The first call makes the copy and
    /// waits until it is done. Throws: CudaError.
    std::uint64_t address() const;

  private:
    Device device_;
    TensorMapDescription description_;
    std::uint64_t bytes_;
    alignas(tensor_map_alignment) std::array<std::byte, tensor_map_bytes> encoded_{};
    TensorMapArgument argument_;
    mutable std::mutex mutex_;
    mutable std::optional<DeviceBuffer> copy_;
};

/// Whether the driver accepts the description, even one that breaks a rule of `broken_rule`. Throws: LibraryError if
/// the driver has no tensor maps.
bool driver_accepts(const TensorMapDescription& description, Device device);

}  // namespace bascule
