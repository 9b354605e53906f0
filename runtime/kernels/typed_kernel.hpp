// A kernel with a C++ signature: `kernel.typed<void(float, const float*, float*, int)>({"float"})`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <bascule/runtime/kernels/kernel.hpp>

namespace bascule {

/// One parameter of a signature that is written on the host's side.
struct HostType {
    enum class Kind : std::uint8_t {
        scalar,   ///< bool, integers, float, double
        pointer,  ///< T*: a device address
        array,    ///< bascule::ArrayView: for a pointer or a view, checked like any array
        bytes,    ///< any other trivially copyable type, for a structure of the same size
    };
    Kind kind = Kind::bytes;
    DType dtype;            ///< of the scalar or of the elements; itemsize 0 for void and for structures
    bool constant = false;  ///< the elements are const
    std::size_t bytes = 0;  ///< of the value itself
};

namespace detail {

template <class T>
constexpr DType host_dtype() noexcept {
    using Kind = DType::Kind;
    if constexpr (std::is_same_v<T, bool>) {
        return {Kind::boolean, 1};
    } else if constexpr (std::is_integral_v<T>) {
        return {std::is_signed_v<T> ? Kind::signed_integer : Kind::unsigned_integer, sizeof(T)};
    } else if constexpr (std::is_floating_point_v<T> && sizeof(T) <= 8) {
        return {Kind::floating, sizeof(T)};
    } else {
        return {Kind::opaque, 0};
    }
}

template <class T>
constexpr HostType host_type() noexcept {
    if constexpr (std::is_same_v<T, ArrayView>) {
        return {HostType::Kind::array, {}, false, 0};
    } else if constexpr (std::is_pointer_v<T>) {
        using Element = std::remove_pointer_t<T>;
        return {HostType::Kind::pointer, host_dtype<std::remove_cv_t<Element>>(), std::is_const_v<Element>,
                sizeof(T)};
    } else if constexpr (host_dtype<T>().itemsize > 0) {
        return {HostType::Kind::scalar, host_dtype<T>(), false, sizeof(T)};
    } else {
        static_assert(std::is_trivially_copyable_v<T>, "a kernel's arguments are copied byte by byte");
        return {HostType::Kind::bytes, {}, false, sizeof(T)};
    }
}

/// `value` in the pack; scalars have exactly the declared type, which was checked when the kernel was typed.
template <class T>
void set_host_value(ArgumentPack& pack, int index, const T& value) {
    if constexpr (std::is_same_v<T, ArrayView>) {
        pack.set(index, value);
    } else if constexpr (std::is_pointer_v<T>) {
        pack.set(index, RawPointer{reinterpret_cast<std::uint64_t>(value)});
    } else if constexpr (host_dtype<T>().itemsize > 0) {
        Scalar scalar;
        if constexpr (std::is_same_v<T, bool>) {
            scalar.kind = Scalar::Kind::boolean;
            scalar.boolean = value;
        } else if constexpr (std::is_floating_point_v<T>) {
            scalar.kind = Scalar::Kind::floating;
            scalar.floating = value;
        } else if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8) {
            scalar.kind = Scalar::Kind::unsigned_integer;
            scalar.unsigned_integer = value;
        } else {
            scalar.integer = static_cast<std::int64_t>(value);
        }
        pack.set(index, scalar);
    } else {
        pack.set(index, RawBytes{std::as_bytes(std::span(&value, 1))});
    }
}

/// The function that these types mean, checked against them. Throws: as Kernel::typed.
Kernel choose_typed(const Kernel& kernel, std::vector<std::string> template_arguments,
                    std::span<const HostType> types, Device device);

}  // namespace detail

/// A function whose parameter types were checked once, so that a call is plain C++ with its
/// usual conversions. Thread-safe; keeps its module.
template <class Signature>
class TypedKernel;

template <class... Parameters>
class TypedKernel<void(Parameters...)> {
  public:
    /// Launches on `stream`. Raw pointers name no stream: work on other streams that they need is the
    /// caller's to wait for; an ArrayView is ordered by its own. Throws: ArgumentError before the first
    /// operation; CudaError.
    void operator()(StreamRef stream, const LaunchConfig& config, const Parameters&... arguments) const {
        ArgumentPack pack(kernel_.signature(stream.device()));
        int index = 0;
        (detail::set_host_value<Parameters>(pack, index++, arguments), ...);
        kernel_.launch(stream, config, pack);
    }

    const Kernel& kernel() const noexcept { return kernel_; }

  private:
    friend class Kernel;
    explicit TypedKernel(Kernel kernel) : kernel_(std::move(kernel)) {}
    Kernel kernel_;
};

template <class Signature>  // NOLINTNEXTLINE(performance-unnecessary-value-param): moved below, in the lambda
TypedKernel<Signature> Kernel::typed(std::vector<std::string> template_arguments, Device device) const {
    return [&]<class... Parameters>(std::type_identity<void(Parameters...)>) {
        const std::array<HostType, sizeof...(Parameters)> types = {detail::host_type<Parameters>()...};
        return TypedKernel<Signature>(
            detail::choose_typed(*this, std::move(template_arguments), types, device));
    }(std::type_identity<Signature>());
}

}  // namespace bascule
