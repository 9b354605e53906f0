#include <array>
#include <cstring>

#include <nlohmann/json.hpp>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/cache/cache_entry.hpp>

namespace bascule {
namespace {

using Json = nlohmann::json;

constexpr std::string_view magic = "BASCULE\x01";
constexpr std::size_t most_header_bytes = 16U << 20;
constexpr int deepest = 8;  // the header's own depth is 4

/// What stands in front of the header.
struct Preamble {
    std::array<char, 8> magic{};
    std::uint64_t header_bytes = 0;
    Digest header_digest;
};
static_assert(sizeof(Preamble) == 32);

enum Section : std::size_t { key_text, manifest, log, ptx, cubin, section_count };
using Sections = std::array<std::string_view, section_count>;

Json to_json(const std::vector<ViewLayout::Slot>& slots) {
    Json list = Json::array();
    for (const ViewLayout::Slot& slot : slots) list.push_back({slot.axis, slot.offset});
    return list;
}

/// Null where the compiler does not tell.
Json to_json(const std::optional<ViewLayout>& layout) {
    if (!layout) return nullptr;
    return {{"pointer", layout->pointer},
            {"index bytes", layout->index_bytes},
            {"extents", to_json(layout->extents)},
            {"strides", to_json(layout->strides)}};
}

Json to_json(const KernelImage& kernel) {
    Json layouts = Json::array();
    for (const auto& layout : kernel.view_layouts) layouts.push_back(to_json(layout));
    return {{"name", kernel.name},
            {"views", std::move(layouts)},
            {"expression", kernel.expression},
            {"lowered", kernel.lowered_name},
            {"reflected", kernel.reflected},
            {"parameters", kernel.parameter_names},
            {"line", kernel.line}};
}

Json header_of(const Image& image, const Sections& sections) {
    Json header = {{"arch", to_string(image.arch)},
                   {"nvrtc", image.nvrtc_version},
                   {"milliseconds", image.compile_milliseconds},
                   {"absent", image.absent},
                   {"kernels", Json::array()},
                   {"sections", Json::array()}};
    for (const KernelImage& kernel : image.kernels) header["kernels"].push_back(to_json(kernel));
    for (const std::string_view section : sections) {
        const Digest digest = digest_of(section);
        header["sections"].push_back({section.size(), digest.high, digest.low});
    }
    return header;
}

std::vector<ViewLayout::Slot> slots_from(const Json& json) {
    std::vector<ViewLayout::Slot> slots;
    for (const Json& slot : json) slots.push_back({slot.at(0).get<int>(), slot.at(1).get<std::uint32_t>()});
    return slots;
}

std::optional<ViewLayout> layout_from(const Json& json) {
    if (json.is_null()) return std::nullopt;
    ViewLayout layout;
    json.at("pointer").get_to(layout.pointer);
    json.at("index bytes").get_to(layout.index_bytes);
    layout.extents = slots_from(json.at("extents"));
    layout.strides = slots_from(json.at("strides"));
    return layout;
}

KernelImage kernel_from(const Json& json) {
    KernelImage kernel;
    json.at("name").get_to(kernel.name);
    json.at("expression").get_to(kernel.expression);
    json.at("lowered").get_to(kernel.lowered_name);
    json.at("reflected").get_to(kernel.reflected);
    json.at("parameters").get_to(kernel.parameter_names);
    json.at("line").get_to(kernel.line);
    for (const Json& layout : json.at("views")) kernel.view_layouts.push_back(layout_from(layout));
    kernel.signature = read_signature(kernel);
    return kernel;
}

/// Whether a JSON text is nested no deeper than a header of ours. The parser's own way of asking doubles its
/// time.
bool is_shallow(std::string_view text) {
    int depth = 0;
    bool in_string = false;
    for (std::size_t at = 0; at < text.size() && depth <= deepest; ++at) {
        const char c = text[at];
        if (in_string) {
            if (c == '\\') ++at;
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            ++depth;
        } else if (c == ']' || c == '}') {
            --depth;
        }
    }
    return depth <= deepest;
}

/// Takes the sections apart; false unless each is what the header says and nothing is left over.
bool split(std::string_view rest, const Json& lengths_and_digests, Sections& sections) {
    if (lengths_and_digests.size() != section_count) return false;
    for (std::size_t i = 0; i < section_count; ++i) {
        const auto [bytes, high, low] = lengths_and_digests.at(i).get<std::array<std::uint64_t, 3>>();
        if (bytes > rest.size()) return false;
        sections[i] = rest.substr(0, bytes);
        rest.remove_prefix(bytes);
        if (digest_of(sections[i]) != Digest{high, low}) return false;
    }
    return rest.empty();
}

/// The header of an entry whose preamble is ours, and what comes behind it.
std::optional<std::string_view> header_text(std::string_view bytes, std::string_view& rest) {
    Preamble preamble;
    if (bytes.size() < sizeof preamble) return std::nullopt;
    std::memcpy(&preamble, bytes.data(), sizeof preamble);
    bytes.remove_prefix(sizeof preamble);
    if (std::string_view(preamble.magic.data(), preamble.magic.size()) != magic) return std::nullopt;
    if (preamble.header_bytes > std::min(bytes.size(), most_header_bytes)) return std::nullopt;
    const std::string_view header = bytes.substr(0, preamble.header_bytes);
    if (digest_of(header) != preamble.header_digest) return std::nullopt;
    rest = bytes.substr(preamble.header_bytes);
    return header;
}

EntryVerdict read_verified(std::string_view bytes, const CacheKey& key, const std::string& source_directory,
                           CacheEntry& entry) {
    std::string_view rest;
    const std::optional<std::string_view> text = header_text(bytes, rest);
    if (!text || !is_shallow(*text)) return EntryVerdict::useless;
    const Json header = Json::parse(*text);
    Sections sections;
    if (!split(rest, header.at("sections"), sections)) return EntryVerdict::useless;
    if (sections[key_text] != key.text) return EntryVerdict::useless;
    std::optional<HeaderManifest> headers = HeaderManifest::from_bytes(sections[manifest]);
    if (!headers) return EntryVerdict::useless;
    if (!headers->holds(source_directory)) return EntryVerdict::other_headers;

    Image image;
    image.arch = parse_arch(header.at("arch").get<std::string>());
    header.at("nvrtc").get_to(image.nvrtc_version);
    header.at("milliseconds").get_to(image.compile_milliseconds);
    header.at("absent").get_to(image.absent);
    for (const Json& kernel : header.at("kernels")) image.kernels.push_back(kernel_from(kernel));
    image.log = sections[log];
    image.ptx = sections[ptx];
    image.cubin = sections[cubin];
    entry.image = std::make_shared<const Image>(std::move(image));
    if (!headers->empty()) entry.headers = std::make_shared<const HeaderManifest>(std::move(*headers));
    return EntryVerdict::good;
}

}  // namespace

std::optional<std::string> to_bytes(const CacheKey& key, const HeaderManifest& headers, const Image& image) {
    const std::string manifest_bytes = headers.to_bytes();
    const Sections sections = {key.text, manifest_bytes, image.log, image.ptx, image.cubin};
    std::string header;
    try {
        header = header_of(image, sections).dump();
    } catch (const Json::exception&) {
        return std::nullopt;
    }
    Preamble preamble;
    std::copy(magic.begin(), magic.end(), preamble.magic.begin());
    preamble.header_bytes = header.size();
    preamble.header_digest = digest_of(header);
    std::string bytes(reinterpret_cast<const char*>(&preamble), sizeof preamble);
    bytes += header;
    for (const std::string_view section : sections) bytes += section;
    return bytes;
}

EntryVerdict read_entry(std::string_view bytes, const CacheKey& key, const std::string& source_directory,
                        CacheEntry& entry) {
    try {
        return read_verified(bytes, key, source_directory, entry);
    } catch (const Json::exception&) {
        return EntryVerdict::useless;  // intact bytes that say other things than ours do
    } catch (const Error&) {
        return EntryVerdict::useless;
    }
}

}  // namespace bascule
