#include <array>
#include <cstring>
#include <utility>

#include <bascule/jit/files/digest.hpp>
#include <bascule/jit/lookup/cache_entry.hpp>
#include <bascule/jit/lookup/image_record.hpp>

namespace bascule {
namespace {

constexpr std::array magic = {'B', 'A', 'S', 'C', 'U', 'L', 'E', '\n'};

/// The first bytes of an entry.
struct Preamble {
    std::array<char, 8> magic{};
    std::uint64_t bytes = 0;  ///< number of bytes after the preamble
    Digest digest;            ///< of those bytes
};
static_assert(sizeof(Preamble) == 32);

/// The bytes after the preamble; nothing if they are damaged or of another version.
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
    write_image(out, image);
    const std::string content = std::move(out).take();
    const Preamble preamble{magic, content.size(), digest_of(content)};
    return std::string(reinterpret_cast<const char*>(&preamble), sizeof preamble) + content;
}

EntryVerdict read_entry(std::string_view bytes, const CacheKey& key, const WantedHeaders& wanted,
                        CacheEntry& entry) {
    const std::optional<EntryOutline> outline = outline_entry(bytes);
    if (!outline || outline->key != key.text) return EntryVerdict::useless;
    if (!outline->headers.empty()) {
        std::optional<HeaderManifest> headers = HeaderManifest::from_bytes(outline->headers);
        if (!headers) return EntryVerdict::useless;
        if (!wanted.accept(*headers)) return EntryVerdict::other_headers;
        entry.headers = std::make_shared<const HeaderManifest>(std::move(*headers));
    }
    std::optional<Image> image = read_image(outline->image);
    if (!image) return EntryVerdict::useless;
    entry.image = std::make_shared<const Image>(*std::move(image));
    return EntryVerdict::good;
}

std::optional<EntryOutline> outline_entry(std::string_view bytes) {
    const std::optional<std::string_view> content = verified(bytes);
    if (!content) return std::nullopt;
    ByteReader in(*content);
    const std::string_view key = in.text(), headers = in.text();
    return in.good() ? std::optional(EntryOutline{key, headers, in}) : std::nullopt;
}

EntryDescription describe_entry(std::string_view bytes) {
    EntryDescription description;
    description.problem = "damaged";
    const std::optional<EntryOutline> outline = outline_entry(bytes);
    if (!outline) return description;
    description.key = key_from_text(std::string(outline->key));
    if (!is_of_this_version(description.key.text)) {
        description.problem = "written by another version of Bascule";
        return description;
    }
    if (!outline->headers.empty() && !HeaderManifest::from_bytes(outline->headers)) return description;
    description.image = read_image(outline->image);
    if (!description.image) return description;
    description.problem.clear();
    description.image->ptx.clear();
    description.image->cubin.clear();
    return description;
}

}  // namespace bascule
