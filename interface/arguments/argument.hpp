// From values to the bytes that a launch passes: checks against the declared types, conversion of scalars,
// the void** table.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <bascule/interface/arguments/argument_value.hpp>
#include <bascule/interface/arguments/signature.hpp>
#include <bascule/interface/arguments/tuple_argument.hpp>

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

/// A structure whose size and fields must be those of the kernel's struct. Only the compiler can tell: the
/// launch asks it (check_layout in jit/probes/struct_probe.hpp).
struct LayoutClaim {
    int argument = 0;
    std::shared_ptr<const StructLayout> layout;
    LayoutSource source = LayoutSource::dtype;
};

/// A tuple for a struct whose members only the compiler knows: the launch asks it (read_members in
/// jit/probes/member_probe.hpp) and passes them to ArgumentPack::set_members.
struct TupleClaim {
    int argument = 0;
    TupleArgument tuple;
};

/// The arguments of one launch, in the layout that the driver takes. Lives on the stack of a launch; up to 32
/// parameters and 1 KiB of them need no allocation. Borrows the signature. Not thread-safe.
///
/// Every `set` checks one value against the declared type and throws ArgumentError, which names the parameter
/// ("argument 2 'x': ...").
class ArgumentPack {
  public:
    explicit ArgumentPack(const Signature& signature)
        : signature_(&signature),
          bytes_(inline_storage_),
          table_(inline_table_),
          producers_(reinterpret_cast<Producer*>(inline_producers_)) {
        if (signature.bytes > inline_bytes || signature.parameters.size() > inline_parameters) [[unlikely]]
            use_storage();
        void** entry = table_;
        for (const Parameter& parameter : signature.parameters) *entry++ = bytes_ + parameter.offset;
    }
    ArgumentPack(ArgumentPack&&) = delete;

    /// The streams of arrays that are set from now on do not join the producers.
    void ignore_streams() noexcept { ignores_streams_ = true; }

    /// An argument of any kind: the general path. The stream that an array names joins the producers, a tuple for a struct
    /// joins `tuple_claims`.
    void set(int index, const ArgumentValue& value);
    void set(int index, const ArrayView& array);
    void set(int index, const Scalar& scalar);
    /// Writes a tuple that was claimed.
    void set_members(const TupleClaim& claim, std::span<const StructMember> members);

    /// The fast path of arrays: a plain one that is what the parameter of that index declares. False, and nothing was done, where
    /// the general path must decide. `stream` is 0 where none is named.
    [[gnu::always_inline]] bool set_plain(int index, const Parameter& parameter, PlainTraits array,
                                          std::uint64_t pointer, std::uint64_t stream) {
        if (!fits(array, parameter.plain)) return false;
        set_accepted(index, parameter, pointer, stream);
        return true;
    }
    /// The same where the array was accepted already.
    [[gnu::always_inline]] void set_accepted(int index, const Parameter& parameter, std::uint64_t pointer,
                                             std::uint64_t stream) {
        std::memcpy(bytes_ + parameter.offset, &pointer, sizeof pointer);
        if (stream == joined_last_ && stream != 0) [[likely]]
            return;
        if (stream == 0 || ignores_streams_) [[unlikely]] {
            arrays_ |= some_name_none;
        } else {
            arrays_ |= some_name_a_stream;
            add_producer(stream, index);
            joined_last_ = stream;
        }
    }
    /// A double, as Python's floats are.
    void set_double(int index, const Parameter& parameter, double value) {
        const auto narrow = static_cast<float>(value);
        if (parameter.plain == plain_scalar({DType::Kind::floating, 4}) && !std::isinf(narrow)) [[likely]] {
            std::memcpy(bytes_ + parameter.offset, &narrow, sizeof narrow);
        } else {
            Scalar scalar;
            scalar.kind = Scalar::Kind::floating;
            scalar.floating = value;
            set(index, scalar);
        }
    }
    /// An integer, as most of Python's ints are.
    void set_integer(int index, const Parameter& parameter, std::int64_t value) {
        const std::uint32_t bytes = plain_itemsize(parameter.plain);
        const int unused = (64 - 8 * static_cast<int>(bytes)) & 63;
        if (is_plain_scalar(parameter.plain, DType::Kind::signed_integer) &&
            value << unused >> unused == value) [[likely]] {
            std::memcpy(bytes_ + parameter.offset, &value, bytes);  // little-endian, as every device is
        } else {
            Scalar scalar;
            scalar.integer = value;
            set(index, scalar);
        }
    }

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

    /// The structures with named fields among the arguments, which were not compared with the kernel's.
    std::span<const LayoutClaim> layout_claims() const noexcept {
        return more_ == nullptr ? std::span<const LayoutClaim>() : more_->layout_claims;
    }
    /// The tuples for structs among the arguments: none of their bytes is set.
    std::span<const TupleClaim> tuple_claims() const noexcept {
        return more_ == nullptr ? std::span<const TupleClaim>() : more_->tuple_claims;
    }
    /// Whether the compiler has to be asked about an argument.
    bool has_claims() const noexcept {
        return more_ != nullptr && !(more_->layout_claims.empty() && more_->tuple_claims.empty());
    }

    /// Joins a stream to the producers; equal handles of one device once.
    void add_producer(std::uint64_t stream, int argument, int device = -1) {
        if (producer_count_ == 0) {
            new (producers_) Producer{stream, argument, device};
            producer_count_ = 1;
        } else if (!producers_[producer_count_ - 1].same_stream({stream, argument, device})) {
            add_another({stream, argument, device});
        }
    }

    /// Of an array's interface that is read for this launch: its default streams, 1 and 2, are those of the
    /// context that is current.
    void note_interface_stream(int index, std::uint64_t stream) noexcept {
        if (stream == 1 || stream == 2) names_default_stream_ = index;
    }
    /// An argument whose interface names a default stream; -1: there is none.
    int names_default_stream() const noexcept { return names_default_stream_; }

    /// The stream that every array of the pack names, when they all name one and the same; empty without
    /// arrays, and for a stream of another device than the launch's.
    std::optional<std::uint64_t> common_stream() const noexcept {
        if (arrays_ != some_name_a_stream || producer_count_ != 1) return std::nullopt;
        return producers_[0].device < 0 ? std::optional(producers_[0].stream) : std::nullopt;
    }

    /// Throws: ArgumentError when `given` differs from what the kernel declares; the message shows the
    /// signature.
    static void check_count(const Signature& signature, std::size_t given) {
        if (given != signature.parameters.size()) [[unlikely]]
            fail_count(signature, given);
    }

  private:
    static constexpr int inline_parameters = 32;
    static constexpr std::size_t inline_bytes = 1024;
    static constexpr int inline_producers = 4;

    const Parameter& parameter(int index) const noexcept {
        return signature_->parameters[static_cast<std::size_t>(index)];
    }
    std::byte* slot(int index) noexcept { return bytes_ + parameter(index).offset; }

    [[noreturn]] static void fail_count(const Signature& signature, std::size_t given);
    void use_storage();
    template <class Given>
    void set_and_name(int index, const Given& given);
    // One for each kind of ArgumentValue: writes it, or refuses it.
    void accept(int index, std::monostate null);
    void accept(int index, const ArrayView& array);
    void accept(int index, const Scalar& scalar);
    void accept(int index, RawPointer pointer);
    void accept(int index, RawBytes bytes);
    void accept(int index, const TupleArgument& tuple);
    void accept(int index, const StructuredScalar& structure);
    void accept(int index, const ImageArgument& image);
    void join(int index, const ArrayView& array);
    void join_arrays(int index, const TupleArgument& tuple);
    void add_another(const Producer& producer);

    /// What few launches need.
    struct More {
        ~More();  // not part of a launch that needs none of it
        std::vector<LayoutClaim> layout_claims;
        std::vector<TupleClaim> tuple_claims;
        std::vector<Producer> producers;       ///< all of them, where they are more than fit below
        std::unique_ptr<std::byte[]> storage;  ///< bytes and table, where they do not fit below
    };
    More& more() {
        if (more_ == nullptr) more_ = std::make_unique<More>();
        return *more_;
    }

    const Signature* signature_;
    std::byte* bytes_;
    void** table_;
    Producer* producers_;
    std::unique_ptr<More> more_;
    std::uint64_t joined_last_ = 0;  ///< the stream of the last plain array that named one
    int producer_count_ = 0;
    int names_default_stream_ = -1;
    static constexpr std::uint8_t some_name_a_stream = 1, some_name_none = 2;
    std::uint8_t arrays_ = 0;  ///< of those, for the arrays that were set so far
    bool ignores_streams_ = false;
    // What follows is not initialised: it would cost a launch more than its checks.
    alignas(Producer) std::byte inline_producers_[inline_producers * sizeof(Producer)];
    void* inline_table_[inline_parameters];
    alignas(16) std::byte inline_storage_[inline_bytes];
};

/// "x=0x7f12a0000000, n=256", for reports of faults: pointers and numbers by their values, the rest by size.
std::string to_string(const ArgumentPack& pack);

}  // namespace bascule
