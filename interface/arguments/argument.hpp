// From values to the bytes that a launch passes: checks against the declared types, conversion of scalars,
// the void** table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <bascule/interface/arguments/argument_value.hpp>
#include <bascule/interface/arguments/signature.hpp>

namespace bascule {

/// A producer stream that a launch is ordered with.
struct Producer {
    std::uint64_t stream = 0;  ///< as the interface gave it
    int argument = 0;          ///< the first argument that names it
    int device = -1;           ///< the number of the device that it is a stream of; -1: the launch's own

    /// Whichever argument names it.
    bool same_stream(const Producer& other) const noexcept {
        return stream == other.stream && device == other.device;
    }
};

/// A structure whose fields must lie where the kernel's struct has them. Only the compiler can tell: whoever
/// launches asks it (check_layout in jit/probes/struct_probe.hpp).
struct LayoutClaim {
    int argument = 0;
    std::shared_ptr<const StructLayout> layout;
};

/// What Python may pass for this parameter, for messages: "a device array", "a tuple of 4 numbers".
std::string what_to_pass(const Parameter& parameter);

/// The arguments of one launch, in the layout that the driver takes. Lives on the stack of a launch; up to 32
/// parameters and 1 KiB of them need no allocation. Borrows the signature. Not thread-safe.
///
/// Every `set` checks one value against the declared type and throws ArgumentError, which names the parameter
/// ("argument 2 'x': ...").
class ArgumentPack {
  public:
    explicit ArgumentPack(const Signature& signature);
    ArgumentPack(const ArgumentPack&) = delete;
    ArgumentPack& operator=(const ArgumentPack&) = delete;

    /// The streams of arrays that are set from now on do not join the producers.
    void ignore_streams() noexcept { ignores_streams_ = true; }

    /// An array for a pointer or a view; its stream, if it names one, joins the producers unless `ordered` is
    /// false.
    void set(int index, const ArrayView& array, bool ordered = true);
    /// A scalar, converted to the declared type and range-checked.
    void set(int index, const Scalar& scalar);
    void set(int index, RawPointer pointer);
    void set(int index, RawBytes bytes);
    /// One number a lane of a vector type.
    void set(int index, const ScalarTuple& tuple);
    void set(int index, const StructuredScalar& structure);
    /// A null pointer, for pointer parameters only.
    void set_null(int index);
    /// Whichever of these it is.
    void set(int index, const ArgumentValue& value);

    const Signature& signature() const noexcept { return *signature_; }
    /// What is passed for one parameter so far: as many bytes as it has.
    std::span<const std::byte> passed(int index) const noexcept {
        const Parameter& parameter = signature_->parameters[static_cast<std::size_t>(index)];
        return {bytes_ + parameter.offset, parameter.bytes};
    }
    /// One pointer a parameter, as cuLaunchKernelEx wants them. Valid while the pack lives and none is added.
    void** table() noexcept { return table_; }
    /// The distinct producer streams, in the order of the arguments.
    std::span<const Producer> producers() const noexcept {
        return {producers_, static_cast<std::size_t>(producer_count_)};
    }

    /// The structures with named fields among the arguments: their sizes fit, their fields were not compared.
    std::span<const LayoutClaim> layout_claims() const noexcept { return layout_claims_; }

    /// Joins a stream to the producers; equal handles of one device once.
    void add_producer(std::uint64_t stream, int argument, int device = -1);

    /// The stream that every array of the pack names, when they all name one and the same; empty without
    /// arrays, and for a stream of another device than the launch's.
    std::optional<std::uint64_t> common_stream() const noexcept;

    /// Throws: ArgumentError when `given` differs from what the kernel declares; the message shows the
    /// signature.
    static void check_count(const Signature& signature, std::size_t given);

  private:
    static constexpr int inline_parameters = 32;
    static constexpr std::size_t inline_bytes = 1024;

    std::byte* slot(int index) noexcept {
        return bytes_ + signature_->parameters[static_cast<std::size_t>(index)].offset;
    }

    void grow_producers();

    const Signature* signature_;
    std::byte* bytes_;
    void** table_;
    Producer* producers_;
    int producer_count_ = 0;
    int producer_capacity_ = inline_parameters;
    int arrays_ = 0;  ///< set so far
    int arrays_with_stream_ = 0;
    bool ignores_streams_ = false;
    alignas(16) std::byte inline_storage_[inline_bytes];
    void* inline_table_[inline_parameters];
    Producer inline_producers_[inline_parameters];
    std::unique_ptr<std::byte[]> heap_storage_;
    std::unique_ptr<void*[]> heap_table_;
    std::unique_ptr<Producer[]> heap_producers_;
    std::vector<LayoutClaim> layout_claims_;
};

/// "x=0x7f12a0000000, n=256", for reports of faults: pointers and numbers by their values, the rest by size.
std::string to_string(const ArgumentPack& pack);

}  // namespace bascule
