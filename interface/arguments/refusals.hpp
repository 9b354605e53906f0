// Why a parameter does not take an argument, and what to do: a table of all reasons, for launches from C++ and Python.
#pragma once

#include <fmt/args.h>

#include <bascule/interface/arguments/signature.hpp>
#include <bascule/interface/errors/rejection.hpp>

namespace bascule {

/// One reason: "the kernel declares `float*`, got None. ADVICE". The texts may have these fields: the parameter's type
/// {declared}, a description of valid arguments {pass}, its size {bytes}, the type of its elements {element}, their
/// {lanes} and the type of one {lane}; the argument {got}; the expression for an address {raw_pointer}; and values of
/// the check, {0} and so on.
struct Refusal {
    ErrorKind kind;
    std::string_view advice;
    std::string_view in_cpp{};  ///< the advice for C++ programs, if it differs
    std::string_view problem = "the kernel declares `{declared}`, got {got}. ";
};

// clang-format off
namespace refusals {

using enum ArgumentError::Kind;

// The parameter is of another kind.
constexpr Refusal other_kind{type, "Pass {pass}."};
constexpr Refusal by_value{type, "It is passed by value: pass {pass}."};
constexpr Refusal array_for_value{type, "It is passed by value: pass {pass}, or declare a pointer."};
constexpr Refusal array_for_number{type, "It is passed by value: pass a scalar, or declare a pointer."};
constexpr Refusal host_array_for_number{type, "Pass a scalar: x.item() for an array of one element."};
constexpr Refusal host_array{type,
    "Move it to the device first: bascule.to_device(x).{0}", "",
    "the kernel declares `{declared}`, got {got}, which lies in host memory. "};
constexpr Refusal unknown{type, "Pass {0}.{1}"};
constexpr Refusal no_declared_type{type, "The code does not say the parameter's type: pass {pass}."};
constexpr Refusal integer_for_pointer{type,
    "Pass a device array; an integer address must be wrapped: bascule.raw_pointer(address).",
    "Pass a pointer to device memory: reinterpret_cast<float*>(buffer.address())."};
constexpr Refusal tuple_for_number{type, "Pass {0}, such as x.shape[0].", "Pass {0}."};
constexpr Refusal tuple_for_array{type,
    "Make a device array of them: bascule.to_device(numpy.array(x, dtype)).", "Pass a device array."};
constexpr Refusal structure_for_vector{type, "Pass {pass}, or a scalar with {lanes} fields of {lane} side by side."};
constexpr Refusal image_for_other{type, "A kernel takes it as `{0}`."};
constexpr Refusal tensor_map_for_other{type,
    "A kernel takes it as `const __grid_constant__ CUtensorMap`, or as `const CUtensorMap*`."};
constexpr Refusal tensor_map_for_writable{type,
    "The kernel could change it for all launches: declare the pointer const, or pass a device array of {0} bytes per map."};
constexpr Refusal unaligned_tensor_map{type, "A tensor map is aligned to {0} bytes, and this type to {1}: declare it alignas({0})."};
constexpr Refusal pointer_for_view{type, "A view needs a shape too: pass a device array."};
constexpr Refusal pointer_for_value{type, "Only pointer parameters take one."};
constexpr Refusal bytes_for_other{type, "Raw bytes are for structs passed by value: pass {pass}."};
constexpr Refusal wrong_size{value, "Pass exactly {bytes} bytes."};
constexpr Refusal null_for_value{type, "None is a null pointer, and this is not a pointer: pass {pass}."};

// Numbers.
constexpr std::string_view with_range = "the kernel declares `{declared}`, which holds {0} to {1}; got {got}. ";
constexpr Refusal not_boolean{overflow, "Pass 0, 1, True or False.", "", with_range};
constexpr Refusal too_large{overflow, "Declare `{2}`, or pass a smaller number.", "", with_range};
constexpr Refusal too_small{overflow, "Declare `{2}`, or pass a larger number.", "", with_range};
constexpr Refusal too_long{overflow, "No integer type holds more than 64 bits."};
constexpr Refusal float_for_integer{type, "Pass an integer: int(x) cuts the fraction off, round(x) rounds."};
constexpr Refusal complex_for_integer{type, "Pass an integer."};
constexpr Refusal complex_for_real{type, "A complex number does not go into a real one: pass x.real or abs(x)."};
constexpr Refusal beyond_double{overflow, "That is beyond the largest double."};
constexpr Refusal beyond_float{overflow,
    "That is beyond what `{declared}` holds and would become infinite: declare a wider type."};
constexpr Refusal no_nan{value, "That type has no NaN: declare a wider one."};
constexpr Refusal no_infinity{overflow, "That type has no infinity: declare a wider one."};
constexpr Refusal beyond_small_float{overflow, "Its largest number is {0}{1}: scale yours, or declare a wider type."};
constexpr Refusal no_power_of_two{value,
    "That type holds powers of two from 2**-127 to 2**127, and how to round other numbers is your choice: pass "
    "ml_dtypes.float8_e8m0fnu(x)."};
constexpr Refusal time_for_number{type, "A time is a signed 64-bit integer: declare `long long`, or pass a number."};
constexpr Refusal no_conversion{type, "No scalar converts to that type."};

// Tuples and their elements.
constexpr Refusal no_number{type, "Pass a number."};
constexpr Refusal no_tuple{type, "Pass a tuple of {0}."};
constexpr Refusal other_length{value, "Pass a tuple of {0}."};
constexpr Refusal no_function_pointer{type,
    "Pass bascule.raw_pointer(address) with an address that a kernel wrote, or None.",
    "Pass the address that a kernel wrote."};
constexpr Refusal no_pointer{type, "Pass a device array, bascule.raw_pointer(address) or None.", "Pass a device array."};
constexpr Refusal no_place_in_tuple{type,
    "A tuple cannot hold a value of this type: pass bascule.raw_bytes(...) for the whole struct.",
    "A tuple cannot hold a value of this type: pass a struct for the whole struct."};
constexpr Refusal structures_in_tuple{not_supported,
    "The fields of an array in a tuple are not compared with the kernel's struct: pass {raw_pointer}."};

// The elements of arrays.
constexpr Refusal bits{value, "Arrays of single bits are masks; kernels do not take them."};
constexpr Refusal array_for_functions{type,
    "Functions have addresses only on the device: pass a number and select in the kernel, or make the function a template "
    "argument."};
constexpr Refusal array_for_pointers{type, "Pass the addresses as an array of uint64, or {raw_pointer}."};
constexpr Refusal undefined_elements{type,
    "`{element}` is not defined in the text, so its layout is not known: pass {raw_pointer}."};
constexpr Refusal other_structures{type, "Pass an array of structures of {0} bytes, or {raw_pointer}."};
constexpr Refusal members_for_structures{type,
    "Pass an array of structures of {0} bytes, or {raw_pointer}. Where the last axes are the members of one, pass "
    "x.reshape(-1).view(\"V{0}\").", "Pass an array of structures of {0} bytes, or {raw_pointer}."};
constexpr Refusal other_rows{type,
    "One element is an array of shape {0} of {lane}: pass an array whose last axes have that shape."};
constexpr Refusal other_lanes{type, "The last axis of the array must have the {lanes} elements of one `{element}`."};
constexpr Refusal no_lanes{type,
    "One `{element}` is {lanes} elements of {lane}: pass such an array with a last axis of {lanes}."};
constexpr Refusal other_elements{type, "{0}."};
constexpr Refusal other_elements_declarable{type, "{0}, or declare `{1}`."};

// The memory layout of elements, and write access.
constexpr Refusal constant_memory{value,
    "Kernels cannot write to constant memory through a pointer: declare the elements const, or pass a copy."};
constexpr Refusal read_only{value, "The kernel could write to it: declare the elements const, or pass a copy."};
constexpr Refusal read_only_untyped{value, "The kernel could write to it, since its code does not say: pass a copy."};
constexpr Refusal unaligned{value, "Its address {0:#x} is not aligned to the {1} bytes that an element needs: pass a copy."};
constexpr Refusal strided_lanes{value,
    "The elements of one `{element}` must lie side by side, and {0} has a stride of {1} bytes: pass a contiguous copy."};
constexpr Refusal not_contiguous{value,
    "A raw pointer does not tell the kernel the strides, so the array must be C-contiguous. Declare `{0}`, or pass a "
    "C-contiguous copy."};
constexpr Refusal not_contiguous_dense{value,
    "A raw pointer does not tell the kernel the strides, so the array must be C-contiguous. Declare `{0}`, pass a "
    "C-contiguous copy, or pass the elements in memory order: x.ravel(\"K\"), or bascule.as_cuda_array(x).ravel(\"K\") for "
    "another library's array.",
    "A raw pointer does not tell the kernel the strides, so the array must be C-contiguous. Declare `{0}`, pass a "
    "C-contiguous copy, or a view of one dimension in memory order."};
constexpr Refusal other_rank{value, "The {0} has {1} dimension{2}, the array {3}{4}: reshape it{5}."};
constexpr Refusal broadcast{value,
    "Axis {0} is broadcast (its stride is 0), so writes would overlap: declare the elements const, or pass a copy."};
constexpr Refusal unaligned_stride{value,
    "The stride of axis {0} is not a multiple of the {1} bytes that an element is aligned to: pass a copy."};
constexpr Refusal other_view{value,
    "This view takes {bytes} bytes in the kernel, and Bascule writes {0}: the kernel was compiled against another Bascule's "
    "views. Compile it with this one."};
constexpr Refusal ignored_mask{not_supported,
    "The kernel would ignore which elements are valid: declare `bascule::masked_view<T, N>`, which takes masks, or pass the "
    "data and the mask as two arrays."};
constexpr Refusal mask_of_lanes{not_supported,
    "One `{element}` is valid as a whole: pass a mask whose last axis is 1, or declare the elements `{0}`."};
constexpr Refusal negative_strides{value,
    "layout_stride counts positive strides in elements, and axis {0} has {1} bytes: declare `{2}`, or pass a copy."};
constexpr Refusal other_order{value, "Its elements must lie in {0} order without gaps: declare `{1}`, or pass a copy."};
constexpr Refusal other_extent{value, "Axis {0} has {1} elements, and the type says {2}."};
constexpr Refusal narrow_index{overflow, "Axis {0} is beyond what the extents' index type holds ({1}): declare a wider one."};
constexpr Refusal unread_layout{value,
    "The memory layout of this type could not be read from the compiler's output: declare `{0}`."};

}  // namespace refusals
// clang-format on

/// Describes valid arguments for this parameter: "a device array", "a tuple of 4 numbers".
std::string what_to_pass(const Parameter& parameter);

namespace detail {
using RefusalValues = fmt::dynamic_format_arg_store<fmt::format_context>;
ArgumentError refusal_of(const Refusal& refusal, const Parameter& parameter, const std::string& got,
                         RefusalValues values);
}  // namespace detail

/// The error about the argument `got`, such as "a float64 array of shape (8,)". The caller adds the argument's index.
template <class... Values>
[[gnu::cold]] ArgumentError refusal_of(const Refusal& refusal, const Parameter& parameter,
                                       const std::string& got, const Values&... values) {
    detail::RefusalValues all;
    (all.push_back(values), ...);
    return detail::refusal_of(refusal, parameter, got, std::move(all));
}

/// Throws the error of refusal_of.
template <class... Values>
[[noreturn, gnu::cold]] void refuse(const Refusal& refusal, const Parameter& parameter,
                                    const std::string& got, const Values&... values) {
    throw refusal_of(refusal, parameter, got, values...);
}

}  // namespace bascule
