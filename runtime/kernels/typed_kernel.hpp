// A kernel with a C++ signature: `kernel.typed<void(float, const float*, float*, int)>({"float"})`.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <variant>

#include <bascule/interface/types/dtype.hpp>
#include <bascule/runtime/kernels/kernel.hpp>
#include <bascule/runtime/memory/device_array.hpp>
#include <bascule/runtime/textures/tensor_map.hpp>
#include <bascule/runtime/textures/texture.hpp>

namespace bascule {

/// One parameter of a C++ signature on the host.
struct HostType {
    enum class Kind : std::uint8_t {
        scalar,      ///< bool, integers, float, double
        pointer,     ///< T*: a device address
        texture,     ///< bascule::Texture: for cudaTextureObject_t or its integer type
        surface,     ///< bascule::Surface: for cudaSurfaceObject_t
        tensor_map,  ///< bascule::TensorMap: for CUtensorMap
        array,       ///< bascule::ArrayView: for a pointer or a view, checked like any array
        bytes,       ///< any other trivially copyable type, for a structure of the same size
    };
    Kind kind = Kind::bytes;
    DType dtype;            ///< of the scalar or the elements; itemsize 0 for void and structures
    bool constant = false;  ///< the elements are const
    std::size_t bytes = 0;  ///< of the value itself
};

namespace detail {

template <class T>
constexpr HostType host_type() noexcept {
    if constexpr (std::is_same_v<T, ArrayView>) {
        return {HostType::Kind::array, {}, false, 0};
    } else if constexpr (std::is_same_v<T, Texture>) {
        return {HostType::Kind::texture, {}, false, 0};
    } else if constexpr (std::is_same_v<T, Surface>) {
        return {HostType::Kind::surface, {}, false, 0};
    } else if constexpr (std::is_same_v<T, TensorMap>) {
        return {HostType::Kind::tensor_map, {}, false, tensor_map_bytes};
    } else if constexpr (std::is_pointer_v<T>) {
        using Element = std::remove_pointer_t<T>;
        return {HostType::Kind::pointer, number_dtype<std::remove_cv_t<Element>>(), std::is_const_v<Element>,
                sizeof(std::uint64_t)};
    } else if constexpr (number_dtype<T>().itemsize > 0) {
        return {HostType::Kind::scalar, number_dtype<T>(), false, sizeof(T)};
    } else {
        static_assert(std::is_trivially_copyable_v<T>, "a kernel's arguments are copied byte by byte");
        return {HostType::Kind::bytes, {}, false, sizeof(T)};
    }
}

/// Converts a C++ number to a Scalar. The argument pack refuses values that the parameter cannot hold.
template <class T>
Scalar host_scalar(T value) {
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
    return scalar;
}

template <class T>
void set_host_value(ArgumentPack& pack, int index, const T& value) {
    if constexpr (std::is_same_v<T, ArrayView>) {
        pack.set(index, value);
    } else if constexpr (std::is_pointer_v<T>) {
        pack.set(index, RawPointer{reinterpret_cast<std::uint64_t>(value)});
    } else if constexpr (std::is_arithmetic_v<T>) {
        Scalar scalar = host_scalar(value);
        scalar.dtype = number_dtype<T>();
        pack.set(index, scalar);
    } else {
        pack.set(index, RawBytes{std::as_bytes(std::span(&value, 1))});
    }
}

/// The value that a call passes for one parameter: a number for a number; anything else that C++ converts to the
/// parameter's type; a DeviceArray for a pointer to its elements or an ArrayView. Lives only during the call.
template <class Parameter>
class Passed {
  public:
    // NOLINTBEGIN(google-explicit-constructor)
    template <class Value>
    requires std::convertible_to<const Value&, Parameter> Passed(const Value& value) : given_(hold(value)) {}
    template <class T>
    requires std::same_as<Parameter, ArrayView> || std::same_as<Parameter, T*> ||
        std::same_as<Parameter, const T*>
        Passed(const DeviceArray<T>& array) : given_(std::in_place_index<1>, &array.view()) {}
    // NOLINTEND(google-explicit-constructor)

    void set(ArgumentPack& pack, int index) const {
        if (const auto* scalar = std::get_if<2>(&given_)) {
            pack.set(index, *scalar);
        } else if (const auto* array = std::get_if<1>(&given_)) {
            pack.set(index, **array);
        } else {
            set_host_value<Parameter>(pack, index, std::get<0>(given_));
        }
    }

  private:
    using Given = std::variant<Parameter, const ArrayView*, Scalar>;

    template <class Value>
    static Given hold(const Value& value) {
        if constexpr (std::is_arithmetic_v<Parameter> && std::is_arithmetic_v<Value>) {
            Scalar scalar = host_scalar(value);
            scalar.dtype = number_dtype<Parameter>();  // for code whose parameter types are unknown
            return Given(std::in_place_index<2>, scalar);
        } else {
            return Given(std::in_place_index<0>, value);
        }
    }

    Given given_;
};

/// A Texture, a Surface or a TensorMap. It must outlive the kernel's run.
template <class Made>
requires std::derived_from<Made, ImageObject> || std::same_as<Made, TensorMap>
class Passed<Made> {
  public:
    Passed(const Made& made) : argument_(&made.argument()) {}  // NOLINT(google-explicit-constructor)
    void set(ArgumentPack& pack, int index) const { pack.set(index, *argument_); }

  private:
    const std::remove_cvref_t<decltype(std::declval<const Made&>().argument())>* argument_;
};

/// Never defined. The compiler's error shows the argument (counted from 1), the kernel's type and the given type.
template <int argument, class KernelDeclares, class GotInstead>
struct wrong_type_of;

template <int argument, class Parameter, class Given>
Passed<Parameter> passed(const Given& given) {
    if constexpr (std::constructible_from<Passed<Parameter>, const Given&>) {
        return Passed<Parameter>(given);
    } else {
        return wrong_type_of<argument, Parameter, Given>::here;
    }
}

/// Returns the function that these types select, and checks them against it. Throws: as Kernel::typed.
Kernel choose_typed(const Kernel& kernel, std::vector<std::string> template_arguments,
                    std::span<const HostType> types, Device device);

}  // namespace detail

/// A function whose parameter types have been checked. Calls convert numbers by value: a float accepts 2, while 2.5 or
/// 1ll << 40 for an int is an ArgumentError. Thread-safe; keeps its module.
template <class Signature>
class TypedKernel;

template <class... Parameters>
class TypedKernel<void(Parameters...)> {
  public:
    /// Launches on `stream`. DeviceArrays and ArrayViews are ordered by their own streams. Raw pointers name no stream:
    /// the caller has to wait for work on other streams. Throws: ArgumentError before the first operation; CudaError.
    template <class... Given>
    void operator()(StreamRef stream, const LaunchConfig& config, const Given&... arguments) const {
        ArgumentPack pack(kernel_.signature(stream.device()));
        set(pack, arguments...);
        kernel_.launch(stream, config, pack);
    }
    /// Launches at least `threads` threads, in blocks that fill the device. Launches nothing for 0, but checks the arguments.
    template <class... Given>
    void forall(StreamRef stream, std::uint64_t threads, const Given&... arguments) const {
        forall(stream, {threads}, arguments...);
    }
    /// The same in two or three dimensions: {x, y, z}.
    template <class... Given>
    void forall(StreamRef stream, std::initializer_list<std::uint64_t> work,
                const Given&... arguments) const {
        ArgumentPack pack(kernel_.signature(stream.device()));
        set(pack, arguments...);
        for (const std::uint64_t extent : work) {
            if (extent == 0) return;
        }
        kernel_.launch(stream, kernel_.configuration_for(stream.device(), {work.begin(), work.size()}), pack);
    }

    const Kernel& kernel() const noexcept { return kernel_; }

  private:
    friend class Kernel;
    explicit TypedKernel(Kernel kernel) : kernel_(std::move(kernel)) {}

    template <class... Given>
    static void set(ArgumentPack& pack, const Given&... arguments) {
        static_assert(sizeof...(Given) == sizeof...(Parameters),
                      "a launch passes one argument for each parameter of the kernel");
        int index = 0;
        [&]<std::size_t... at>(std::index_sequence<at...>) {
            (detail::passed<static_cast<int>(at) + 1, Parameters>(arguments).set(pack, index++), ...);
        }
        (std::index_sequence_for<Given...>());
    }

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
