// Turns argument values into the bytes that a launch passes: checks them against the declared types, converts
// scalars, and fills the void** table.
#pragma once

#include <cmath>
#include <cstring>

#include <bascule/interface/arguments/tuple_argument.hpp>

namespace bascule {

/// A structure whose size and fields must be those of the kernel's struct. Only the compiler knows these: the launch
/// asks it (check_layout in jit/questions/struct_probe.hpp).
struct LayoutClaim {
    int argument = 0;
    std::shared_ptr<const StructLayout> layout;
    LayoutSource source = LayoutSource::dtype;
};

/// A tuple for a struct whose members only the compiler knows. The launch asks it for them (read_members in
/// jit/questions/probed_members.hpp) and passes them to ArgumentPack::set_members.
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

    /// Arrays that are set after this call add no producer streams.
    void ignore_streams() noexcept { ignores_streams_ = true; }

    /// Sets an argument of any kind by the general path. The stream of an array is added to the producers, and a tuple
    /// for a struct to `tuple_claims`.
    void set(int index, const ArgumentValue& value);
    void set(int index, const ArrayView& array);
    void set(int index, const Scalar& scalar);
    /// Writes a tuple of `tuple_claims` once its members are known.
    void set_members(const TupleClaim& claim, std::span<const StructMember> members);

    /// The fast path for a plain array that the parameter accepts. `stream` is the handle of the array's stream, on the
    /// launch's device, or 0.
    [[gnu::always_inline]] void set_accepted(int index, const Parameter& parameter, std::uint64_t pointer,
                                             std::uint64_t stream) {
        std::memcpy(bytes_ + parameter.offset, &pointer, sizeof pointer);
        join_accepted(index, stream);
    }
    /// The same for a tensor map of an array with this stream. The parameter holds one by value.
    void set_tensor_map(int index, const Parameter& parameter, const std::byte* encoded,
                        std::uint64_t stream) {
        std::memcpy(bytes_ + parameter.offset, encoded, tensor_map_bytes);
        join_accepted(index, stream);
    }
    /// Adds the stream of an accepted array to the producers. `stream` is 0 if the array names none.
    [[gnu::always_inline]] void join_accepted(int index, std::uint64_t stream) {
        if (stream == joined_last_ && stream != 0) [[likely]]
            return;
        if (stream == 0 || ignores_streams_) [[unlikely]] {
            arrays_ |= some_name_none;
        } else {
            arrays_ |= some_name_a_stream;
            add_producer({stream}, index);
            joined_last_ = stream;
        }
    }
    /// Sets a double, such as a Python float.
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
    /// Sets an integer of 64 bits, such as most Python ints.
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
    /// The bytes of one parameter as set so far.
    std::span<const std::byte> passed(int index) const noexcept {
        const Parameter& parameter = signature_->parameters[static_cast<std::size_t>(index)];
        return {bytes_ + parameter.offset, parameter.bytes};
    }
    /// One pointer per parameter, as cuLaunchKernelEx takes them. Valid as long as the pack.
    void** table() noexcept { return table_; }
    /// The distinct producer streams, in the order of the arguments.
    std::span<const Producer> producers() const noexcept {
        return {producers_, static_cast<std::size_t>(producer_count_)};
    }

    /// The structures with named fields, by value or as elements of an array, that have not been compared with the
    /// kernel's struct.
    std::span<const LayoutClaim> layout_claims() const noexcept {
        return more_ == nullptr ? std::span<const LayoutClaim>() : more_->layout_claims;
    }
    /// The arguments that are tuples for structs. Their bytes are not set yet.
    std::span<const TupleClaim> tuple_claims() const noexcept {
        return more_ == nullptr ? std::span<const TupleClaim>() : more_->tuple_claims;
    }
    /// Whether the compiler has to be asked about an argument.
    bool has_claims() const noexcept {
        return more_ != nullptr && !(more_->layout_claims.empty() && more_->tuple_claims.empty());
    }

    /// Adds a stream to the producers unless it is one already.
    void add_producer(const ProducerStream& stream, int argument) {
        if (producer_count_ == 0) {
            new (producers_) Producer{stream, argument};
            producer_count_ = 1;
        } else if (!producers_[producer_count_ - 1].stream.same_stream(stream)) {
            add_another({stream, argument});
        }
    }

    /// Notes the stream of an array interface that is read for this launch. The default streams, 1 and 2, are those
    /// of the current context.
    void note_interface_stream(int index, std::uint64_t stream) noexcept {
        if (stream == 1 || stream == 2) names_default_stream_ = index;
    }
    /// The index of an argument whose interface names a default stream; -1 if there is no such argument.
    int names_default_stream() const noexcept { return names_default_stream_; }

    /// The stream if all arrays of the pack name the same one. Empty without arrays, and if the stream may be of
    /// another device than the launch's.
    std::optional<std::uint64_t> common_stream() const noexcept {
        if (arrays_ != some_name_a_stream || producer_count_ != 1) return std::nullopt;
        const ProducerStream& stream = producers_[0].stream;
        return stream.device < 0 ? std::optional(stream.handle) : std::nullopt;
    }

    /// Throws: ArgumentError if `given` is not the number of parameters; the message shows the signature.
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
    // One overload for each kind of ArgumentValue. Each writes the value or throws.
    void accept(int index, std::monostate null);
    void accept(int index, const ArrayView& array);
    void accept(int index, const Scalar& scalar);
    void accept(int index, RawPointer pointer);
    void accept(int index, RawBytes bytes);
    void accept(int index, const TupleArgument& tuple);
    void accept(int index, const StructuredScalar& structure);
    void accept(int index, const ImageArgument& image);
    void accept(int index, const TensorMapArgument& map);
    void join(int index, const ArrayView& array);
    void join_arrays(int index, const TupleArgument& tuple);
    void add_another(const Producer& producer);

    /// Members that few launches need.
    struct More {
        ~More();  // out of line, because most launches do not need it
        std::vector<LayoutClaim> layout_claims;
        std::vector<TupleClaim> tuple_claims;
        std::vector<Producer> producers;       ///< all producers, if they do not fit inline
        std::unique_ptr<std::byte[]> storage;  ///< bytes and table, if they do not fit inline
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
    std::uint8_t arrays_ = 0;  ///< these flags, for the arrays that were set so far
    bool ignores_streams_ = false;
    // The members below are not initialised, because that would cost a launch more than its checks.
    alignas(Producer) std::byte inline_producers_[inline_producers * sizeof(Producer)];
    void* inline_table_[inline_parameters];
    alignas(16) std::byte inline_storage_[inline_bytes];
};

/// "x=0x7f12a0000000, n=256", for reports of faults. Shows pointers and numbers by value, others by size.
std::string to_string(const ArgumentPack& pack);

}  // namespace bascule
