#include <array>
#include <bit>
#include <concepts>
#include <cstring>
#include <utility>
#include <vector>

#include <bascule/jit/cache/cache_entry.hpp>
#include <bascule/jit/files/byte_record.hpp>
#include <bascule/jit/files/digest.hpp>

namespace bascule {
namespace {

constexpr std::array magic = {'B', 'A', 'S', 'C', 'U', 'L', 'E', '\x04'};

/// What an entry begins with.
struct Preamble {
    std::array<char, 8> magic{};
    std::uint64_t bytes = 0;  ///< behind the preamble
    Digest digest;            ///< of those
};
static_assert(sizeof(Preamble) == 32);

/// Goes through the members of an image: a writer writes them, a reader reads them in the same order.
template <class Bytes>
class Members {
  public:
    explicit Members(Bytes& bytes) : bytes_(bytes) {}

    void pass(Image& image) {
        all(image.arch, image.log, image.ptx, image.cubin, image.kernels, image.absent, image.nvrtc_version,
            image.compile_milliseconds);
    }

  private:
    static constexpr bool writes = std::same_as<Bytes, ByteWriter>;

    template <class... T>
    void all(T&... members) {
        (pass(members), ...);
    }
    void pass(std::string& text) {
        if constexpr (writes) {
            bytes_.text(text);
        } else {
            text = bytes_.text();
        }
    }
    template <std::integral Number>
    void pass(Number& number) {
        if constexpr (writes) {
            bytes_.number(static_cast<std::uint64_t>(number));
        } else {
            number = static_cast<Number>(bytes_.number());
        }
    }
    template <class Choice>
    void choice(Choice& value, Choice last) {
        if constexpr (writes) {
            bytes_.number(static_cast<std::uint64_t>(value));
        } else {
            value = static_cast<Choice>(bytes_.choice(static_cast<std::uint64_t>(last)));
        }
    }
    void pass(bool& value) { choice(value, true); }
    void pass(double& value) {
        auto bits = std::bit_cast<std::uint64_t>(value);
        pass(bits);
        value = std::bit_cast<double>(bits);
    }
    template <class T>
    void pass(std::vector<T>& list) {
        if constexpr (writes) {
            bytes_.number(list.size());
        } else {
            list.resize(bytes_.count());
        }
        for (T& each : list) pass(each);
    }
    template <class T>
    void pass(std::optional<T>& value) {
        bool present = value.has_value();
        pass(present);
        if (present && !value) value.emplace();
        if (present) pass(*value);
    }
    void pass(std::pair<std::string, std::string>& texts) { all(texts.first, texts.second); }

    void pass(Arch& arch) { all(arch.major, arch.minor, arch.suffix, arch.is_virtual); }
    void pass(KernelImage& kernel) {
        all(kernel.name, kernel.expression, kernel.lowered_name, kernel.reflected, kernel.line,
            kernel.signature);
    }
    void pass(Signature& signature) {
        all(signature.kernel, signature.parameters, signature.bytes, signature.defaults);
    }
    void pass(Parameter& parameter) {
        all(parameter.name, parameter.spelling, parameter.type, parameter.bytes, parameter.alignment,
            parameter.offset, parameter.plain, parameter.tag.kernel, parameter.tag.parameter);
    }
    void pass(ParameterType& type) {
        choice(type.kind, ParameterType::Kind::opaque);
        choice(type.element_kind, ParameterType::Element::function);
        choice(type.order, ParameterType::Order::strided);
        all(type.dtype, type.lanes, type.character, type.constant, type.rank, type.alignment, type.element,
            type.index, type.static_extents, type.layout);
    }
    void pass(DType& dtype) {
        choice(dtype.kind, DType::Kind::bit);
        choice(dtype.format, DType::Format::uint4);
        choice(dtype.unit, DType::TimeUnit::as);
        all(dtype.itemsize, dtype.count);
    }
    void pass(ViewLayout& layout) { all(layout.pointer, layout.index_bytes, layout.extents, layout.strides); }
    void pass(ViewLayout::Slot& slot) { all(slot.axis, slot.offset); }

    Bytes& bytes_;
};

/// What stands behind the preamble; nothing when it is damaged or of another version.
std::optional<std::string_view> verified(std::string_view bytes) {
    Preamble preamble;
    if (bytes.size() < sizeof preamble) return std::nullopt;
    std::memcpy(&preamble, bytes.data(), sizeof preamble);
    bytes.remove_prefix(sizeof preamble);
    const bool whole = preamble.magic == magic && preamble.bytes == bytes.size();
    return whole && digest_of(bytes) == preamble.digest ? std::optional(bytes) : std::nullopt;
}

}  // namespace

std::string to_bytes(const CacheKey& key, const HeaderManifest& headers, const Image& image) {
    ByteWriter out;
    out.text(key.text);
    out.text(headers.empty() ? std::string() : headers.to_bytes());
    Image copy = image;  // members are passed as a reader needs them
    Members(out).pass(copy);
    const std::string content = std::move(out).take();
    const Preamble preamble{magic, content.size(), digest_of(content)};
    return std::string(reinterpret_cast<const char*>(&preamble), sizeof preamble) + content;
}

EntryVerdict read_entry(std::string_view bytes, const CacheKey& key, const WantedHeaders& wanted,
                        CacheEntry& entry) {
    const std::optional<std::string_view> content = verified(bytes);
    if (!content) return EntryVerdict::useless;
    ByteReader in(*content);
    if (in.text() != key.text) return EntryVerdict::useless;
    if (const std::string_view manifest = in.text(); !manifest.empty()) {
        std::optional<HeaderManifest> headers = HeaderManifest::from_bytes(manifest);
        if (!headers) return EntryVerdict::useless;
        if (!wanted.accept(*headers)) return EntryVerdict::other_headers;
        entry.headers = std::make_shared<const HeaderManifest>(std::move(*headers));
    }
    Image image;
    Members(in).pass(image);
    if (!in.at_end()) return EntryVerdict::useless;
    entry.image = std::make_shared<const Image>(std::move(image));
    return EntryVerdict::good;
}

std::optional<EntryOutline> outline_entry(std::string_view bytes) {
    const std::optional<std::string_view> content = verified(bytes);
    if (!content) return std::nullopt;
    ByteReader in(*content);
    EntryOutline outline;
    outline.key = in.text();
    outline.headers = in.text();
    return in.good() ? std::optional(outline) : std::nullopt;
}

EntryDescription describe_entry(std::string_view bytes) {
    EntryDescription description;
    description.problem = "damaged";
    const std::optional<std::string_view> content = verified(bytes);
    if (!content) return description;
    ByteReader in(*content);
    description.key = key_from_text(in.text());
    if (!is_of_this_version(description.key.text)) {
        description.problem = "written by another version of Bascule";
        return description;
    }
    const std::string_view manifest = in.text();
    if (!manifest.empty() && !HeaderManifest::from_bytes(manifest)) return description;
    Image image;
    Members(in).pass(image);
    if (!in.at_end()) return description;
    description.problem.clear();
    for (const KernelImage& kernel : image.kernels) {
        if (kernel.lowered_name.empty()) continue;  // only its signature was asked for
        description.kernels.push_back(kernel.expression.empty() ? kernel.name : kernel.expression);
    }
    description.arch = to_string(image.arch);
    description.nvrtc_version = image.nvrtc_version;
    return description;
}

}  // namespace bascule
