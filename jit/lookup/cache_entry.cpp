#include <cstring>

#include <fmt/format.h>

#include <bascule/jit/compile/nvrtc_input.hpp>
#include <bascule/jit/files/paths.hpp>
#include <bascule/jit/lookup/cache_entry.hpp>

namespace bascule {

// Record calls these functions and finds them by argument-dependent look-up.
BASCULE_RECORD(KeyFields, its.schema, its.text, its.arguments, its.headers, its.instances, its.purpose,
               its.functions_too, its.arch, its.nvrtc, its.include_paths, its.prelude)
BASCULE_RECORD(Arch, its.major, its.minor, its.suffix, its.is_virtual)
template <class R>
void pass_members(R& record, DType& dtype) {
    record.template choice<DType::Kind::bit>(dtype.kind);
    record.template choice<DType::Format::uint4>(dtype.format);
    record.template choice<DType::TimeUnit::as>(dtype.unit);
    record.BASCULE_MEMBERS(dtype.itemsize, dtype.count);
}
BASCULE_RECORD(ViewLayout::Slot, its.axis, its.offset)
BASCULE_RECORD(ViewLayout, its.pointer, its.index_bytes, its.extents, its.strides)
template <class R>
void pass_members(R& record, ParameterType& type) {
    record.template choice<ParameterType::Kind::untyped>(type.kind);
    record.template choice<ParameterType::Image::surface>(type.image);
    record.template choice<ParameterType::Element::function>(type.element_kind);
    record.template choice<ParameterType::Order::strided>(type.order);
    record.BASCULE_MEMBERS(type.dtype, type.lanes, type.row, type.character, type.constant, type.rank,
                           type.alignment, type.element, type.index, type.static_extents, type.layout);
}
BASCULE_RECORD(Parameter, its.name, its.spelling, its.type, its.bytes, its.alignment, its.offset, its.plain,
               its.tag.kernel, its.tag.parameter)
BASCULE_RECORD(Signature, its.kernel, its.parameters, its.bytes, its.defaults)
BASCULE_RECORD(KernelImage, its.name, its.expression, its.lowered_name, its.reflected, its.line,
               its.signature)
BASCULE_RECORD(Image, its.arch, its.log, its.ptx, its.cubin, its.kernels, its.absent, its.nvrtc_version,
               its.compile_milliseconds)

namespace {

/// Identifies the format of entries: the Bascule version, how it reads the compiler's names, and the members.
const std::string& schema() {
    // Incremented when the same compiler output is read in another way.
    static constexpr const char* reading = "2";
    static const std::string text = [] {
        FormatText format;
        Image image;
        Record(format).pass(image);
        return fmt::format("bascule {} {} {}", BASCULE_VERSION, reading,
                           to_string(digest_of(HeaderManifest::format() + std::move(format).take())));
    }();
    return text;
}

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

/// Returns nothing unless the rest of `in` is one image.
std::optional<Image> read_image(ByteReader in) {
    Image image;
    Record(in).pass(image);
    return in.at_end() ? std::optional(std::move(image)) : std::nullopt;
}

}  // namespace

CacheKey key_of(const Program& program, const Nvrtc& nvrtc) {
    std::vector<std::string> arguments = to_arguments(program.options);
    // The debug lines of the image name a file in that directory.
    if (!program.options.keep_sources.empty())
        arguments.push_back("keep_sources=" + absolute_path(program.options.keep_sources));
    const std::string arch = to_string(program.arch);
    // The whole prelude, because the other fields of the key determine which part of it a program gets.
    static const std::string prelude = to_string(digest_of(whole_prelude()));
    const std::string made = program.maker == nullptr ? std::string() : program.maker->key();
    KeyFields fields{.schema = schema(),
                     .text = program.maker == nullptr ? program.source.text : made,
                     .arguments = {arguments.begin(), arguments.end()},
                     .headers = {program.options.headers.begin(), program.options.headers.end()},
                     .instances = {},
                     .purpose = static_cast<std::uint64_t>(program.purpose),
                     .functions_too = program.functions_too,
                     .arch = arch,
                     .nvrtc = nvrtc.identity().empty() ? nvrtc.path() : nvrtc.identity(),
                     .include_paths = {nvrtc.include_paths().begin(), nvrtc.include_paths().end()},
                     .prelude = prelude};
    for (const Instance& instance : program.instances)
        fields.instances.emplace_back(instance.kernel, instance.expression);
    ByteWriter out;
    Record(out).pass(fields);
    return key_from_text(std::move(out).take());
}

std::optional<KeyFields> fields_of(std::string_view key_text) {
    ByteReader in(key_text);
    KeyFields fields;
    Record(in).pass(fields);
    return in.at_end() ? std::optional(std::move(fields)) : std::nullopt;
}

CacheKey key_from_text(std::string text) {
    const Digest digest = digest_of(text);
    return {std::move(text), digest};
}

bool is_of_this_version(std::string_view key_text) { return ByteReader(key_text).text() == schema(); }

std::string to_bytes(const CacheKey& key, const HeaderManifest& headers, const Image& image) {
    ByteWriter out;
    out.text(key.text);
    out.text(headers.empty() ? std::string() : headers.to_bytes());
    Image copy = image;  // because Record takes non-const references, into which a reader writes
    Record(out).pass(copy);
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
